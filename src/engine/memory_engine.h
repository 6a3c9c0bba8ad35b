// memory_engine.h - the data fits the budget: it is read once into anonymous huge pages and served
// from there. No faults of a mapping, no SIGBUS, no page tables of the file.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"

namespace lowtide {

// Claims files->total_bytes() of the budget. A thread of its own fetches the data through `source`
// from front to back, from the moment that it is clear that most of it will be needed; until a part
// has come, `source` serves it, so the first batch is not kept waiting.
[[nodiscard]] std::unique_ptr<Engine> make_memory_engine(std::shared_ptr<Files> files,
                                                         std::unique_ptr<Engine> source,
                                                         Budget& budget, std::string reason);

}  // namespace lowtide
