#include "job/array_output.h"

#include "format/array_header.h"

namespace lowtide {

ArrayOutput::ArrayOutput(const std::string& path, const DType& dtype,
                         const std::vector<std::uint64_t>& shape, std::uint64_t buffer_bytes,
                         std::uint64_t dirty_chunk_bytes, bool header)
    : file_(path, PublishedFile::Start::anew, dirty_chunk_bytes),
      buffer_(buffer_bytes, /*prefault=*/false, "write buffers"),
      output_(file_, buffer_.bytes()) {
  if (!header) return;
  const std::string text = ArrayHeader(dtype, shape, false, path).text(shape.at(0));
  output_.append(std::as_bytes(std::span(text)));
}

void ArrayOutput::sync() {
  output_.flush();
  file_.sync();
}

void ArrayOutput::publish() {
  output_.flush();
  file_.publish();
}

}  // namespace lowtide
