// source.h - what a job reads: as facts of its plan, opened, and compared with what it was when the
// plan was made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/facts.h"
#include "lowtide/jobs.h"

namespace lowtide {

// A source that is open for one task. Its members share `memory_bytes`; nothing that they read
// stays in the page cache. Any thread may read.
struct OpenSource {
  std::optional<Array> array;  // the values, if there are offsets
  std::optional<Tokens> tokens;
  std::optional<Array> offsets;

  // The files, with indexes.
  [[nodiscard]] std::vector<std::string> files() const;
  // Changes if a file is added, replaced or rewritten. Equal on all machines that see the files.
  [[nodiscard]] std::uint64_t stamp() const;
};

// Throws as Array::open and Tokens::open do.
[[nodiscard]] OpenSource open_source(const JobSource& source, std::uint64_t memory_bytes);
// The same, but IoError(ESTALE) if the stamp is another one.
[[nodiscard]] OpenSource open_same_source(const JobSource& source, std::uint64_t stamp,
                                          std::uint64_t memory_bytes);
// Throws that error unless the files are what they were when they were opened.
void check_same(const OpenSource& source, std::uint64_t stamp);

// The least memory with which a source can be read.
inline constexpr std::uint64_t kLeastSourceBytes = 512 * 1024;

// Paths become absolute.
void add_source(const JobSource& source, const std::string& prefix, Facts* facts);
[[nodiscard]] JobSource source_of(const Facts& facts, const std::string& prefix);
// All paths as given, values before offsets.
[[nodiscard]] std::vector<std::string> given_paths(const JobSource& source);

}  // namespace lowtide
