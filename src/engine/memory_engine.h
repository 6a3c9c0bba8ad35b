// memory_engine.h - for data that fits the budget: it is read once into anonymous huge pages and
// served from there, without the page faults, the SIGBUS and the page tables of a mapped file.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"

namespace lowtide {

// Claims files.total_bytes() of the budget. Once most of the data is going to be needed, threads of
// its own fetch it through `source`. Meanwhile `source` serves every set of reads whose bytes are
// not here yet. Where filling turns out to be much faster than that, sets wait for it instead.
[[nodiscard]] std::unique_ptr<Engine> make_memory_engine(const Files& files,
                                                         std::unique_ptr<Engine> source,
                                                         Budget& budget, std::string reason);

}  // namespace lowtide
