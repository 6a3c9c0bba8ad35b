// doctor.h - what this machine allows, what a path lies on, what Lowtide makes of both, and what
// would make it faster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

enum class FactState {
  good,
  note,     // works, and is worth knowing
  bad,      // costs speed or memory
  unknown,  // could not be asked; `detail` says why
};
[[nodiscard]] const char* fact_state_word(FactState state) noexcept;

struct Fact {
  std::string name;  // stable: "kernel", "io_uring", ...
  FactState state = FactState::unknown;
  std::string value;   // short; "unknown" where the state is
  std::string detail;  // what it means, and who says so
  std::string advice;  // what would make it better; empty: nothing to do
};

struct DoctorOptions {
  // A file or a folder. With it there are more facts, in this order: path, file_system, device,
  // read_ahead, direct_io, residency, large_folios; always the last: choice.
  std::optional<std::string> path = std::nullopt;
  std::uint64_t memory_bytes = 0;  // what Lowtide would be given; 0: its default
  // Where the command is installed; if not given, where this executable is.
  std::optional<std::string> folder = std::nullopt;
};

// Facts without a path: build, kernel, io_uring, cachestat, memory, memory_limit, default_memory,
// open_files, locked_memory, huge_pages, choice. Reads some bytes of a file whose residency the
// kernel does not tell, as opening it does, and changes nothing. Throws IoError for a path that is
// not there; whatever else cannot be known is a fact that says so.
[[nodiscard]] std::vector<Fact> examine(const DoctorOptions& options = {});

// The facts in two sentences: what Lowtide will use here, and the one thing that would make it
// faster, if there is one.
[[nodiscard]] std::string conclusion_of(const std::vector<Fact>& facts);

}  // namespace lowtide
