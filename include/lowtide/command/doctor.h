// doctor.h - what this machine allows, which storage a path is on, what Lowtide will use, and what
// would make it faster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

// How to judge a fact.
enum class FactState {
  good,
  note,     // works, and is worth knowing
  bad,      // costs speed or memory
  unknown,  // could not be determined; `detail` says why
};
// The enumerator's name.
[[nodiscard]] const char* fact_state_word(FactState state) noexcept;

// One fact about this machine or a path.
struct Fact {
  std::string name;  // stable: "kernel", "io_uring", ...
  FactState state = FactState::unknown;
  std::string value;   // short; "unknown" if the state is unknown
  std::string detail;  // what it means, and where it comes from
  std::string advice;  // what would improve it; empty: nothing to do
};

struct DoctorOptions {
  // A file or a folder. It adds these facts, in this order: path, file_system, device, read_ahead,
  // direct_io, residency, large_folios. The fact `choice` is always last.
  std::optional<std::string> path = std::nullopt;
  std::uint64_t memory_bytes = 0;  // the budget that Lowtide would get; 0: its default
  // Where the command is installed; if not given, the folder of this executable.
  std::optional<std::string> folder = std::nullopt;
};

// Collects the facts. Without a path: build, kernel, io_uring, cachestat, memory, memory_limit,
// default_memory, open_files, locked_memory, huge_pages, choice. Changes nothing; if the kernel
// does not report the residency of the file, it reads a few bytes of it, as opening it does. Throws
// IoError for a path that does not exist; anything else that cannot be determined becomes a fact
// with the state `unknown`. Any thread.
[[nodiscard]] std::vector<Fact> examine(const DoctorOptions& options = {});

// The facts in two sentences: what Lowtide will use here, and the one change that would make it
// faster, if there is one.
[[nodiscard]] std::string conclusion_of(const std::vector<Fact>& facts);

}  // namespace lowtide
