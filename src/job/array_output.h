// array_output.h - an array whose rows are all known in number, written from the first to the last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lowtide/dtype.h"
#include "os/memory.h"
#include "writer/published_file.h"
#include "writer/sequential_output.h"

namespace lowtide {

// One thread at a time. Unlike ArrayWriter it has one buffer, which is enough for rows that come in
// order. Destroyed without publish(), it leaves nothing. Throws IoError.
class ArrayOutput {
 public:
  // Without a header (raw) if `header` is false. The path ends as array_suffix() says if it is.
  ArrayOutput(const std::string& path, const DType& dtype, const std::vector<std::uint64_t>& shape,
              std::uint64_t buffer_bytes, std::uint64_t dirty_chunk_bytes, bool header = true);

  // As PublishedFile::sign.
  void sign(std::uint64_t job) { file_.sign(job); }
  void append(std::span<const std::byte> bytes) { output_.append(bytes); }
  // What was appended is durable, but has no name.
  void sync();
  void publish();

 private:
  PublishedFile file_;
  Memory buffer_;
  SequentialOutput output_;
};

}  // namespace lowtide
