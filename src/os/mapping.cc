#include "os/mapping.h"

#include <sys/mman.h>

#include <cerrno>

#include "lowtide/error.h"
#include "os/file.h"
#include "os/sys.h"

namespace lowtide {

Mapping::Mapping(const File& file) : file_(file), size_bytes_(file.shard().size_bytes) {
  if (size_bytes_ == 0) throw FormatError(file.shard().path + ": an empty file cannot be mapped");
  void* const at = sys::table.mmap(nullptr, size_bytes_, PROT_READ, MAP_SHARED, file.fd(), 0);
  if (at == MAP_FAILED) throw IoError(errno, "mmap", file.shard().path);
  data_ = static_cast<std::byte*>(at);
}

Mapping::~Mapping() {
  ::munmap(data_, size_bytes_);
}

void Mapping::let_go() const {
  if (sys::table.madvise(data_, size_bytes_, MADV_DONTNEED) != 0) {
    throw IoError(errno, "madvise", file_.shard().path);
  }
}

}  // namespace lowtide
