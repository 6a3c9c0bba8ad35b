// copy.h - jobs of one task that stream their sources into one file: convert and merge.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job/folder.h"
#include "job/source.h"
#include "job/watch.h"
#include "lowtide/dtype.h"

namespace lowtide {

enum class CopyKind {
  tokens,     // to a token file, document by document
  integers,   // to an array with one axis
  arrays,     // rows of arrays to an array in C order
  sequences,  // token files with indexes to one of the same format, sequence by sequence
};

struct Copy {
  CopyKind kind = CopyKind::tokens;
  std::vector<JobSource> sources;
  std::vector<std::uint64_t> stamps;
  std::string format;                // of the result
  DType dtype;                       // likewise
  std::vector<std::uint64_t> shape;  // of an array
  std::uint64_t total_bytes = 0;     // of the sources
  Destination destination;
  std::uint64_t job = 0;  // as PublishedFile::sign
};

// How the memory of a copy is divided.
struct CopyMemory {
  std::uint64_t source_bytes, block_bytes, output_bytes, dirty_chunk_bytes, token_writer_bytes;
};
[[nodiscard]] CopyMemory copy_memory(const Copy& copy, std::uint64_t memory_bytes);

// They write the destination, and throw as Plan::run_task does.
void copy_tokens(const Copy& copy, const CopyMemory& sizes, JobWatch& watch);  // tokens, integers
void copy_arrays(const Copy& copy, const CopyMemory& sizes, JobWatch& watch);  // arrays
void copy_sequences(const Copy& copy, const CopyMemory& sizes, JobWatch& watch);  // sequences

}  // namespace lowtide
