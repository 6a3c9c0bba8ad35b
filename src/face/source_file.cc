#include "face/source_file.h"

#include <cerrno>
#include <utility>

#include "http/address.h"
#include "lowtide/error.h"
#include "os/paths.h"

namespace lowtide {

Shard SourceFile::shard() const {
  if (remote_ != nullptr) return remote_->shard();
  Shard shard = local_->shard();
  shard.path = whole_path(shard.path);
  return shard;
}

void SourceFile::read_exact(std::uint64_t offset_bytes, std::span<std::byte> out) const {
  if (remote_ != nullptr) {
    remote_->read_exact(offset_bytes, out);
  } else {
    local_->read_exact(offset_bytes, out);
  }
}

SourceOpener::SourceOpener(const SignRequest& sign)
    : asker_(sign ? std::make_shared<Asker>(sign) : nullptr) {}

std::shared_ptr<SourceFile> SourceOpener::open(const std::string& path) {
  if (!is_address(path)) return std::make_shared<SourceFile>(std::make_shared<File>(path));
  if (transport_ == nullptr) {
    try {
      transport_ = std::make_shared<Transport>();
    } catch (const IoError& error) {
      throw IoError(error.err, "open", shown_address(path), std::nullopt, Transport::probe());
    }
  }
  return std::make_shared<SourceFile>(std::make_shared<RemoteFile>(transport_, path, asker_));
}

std::shared_ptr<SourceFile> SourceOpener::open_if_there(const std::string& path) {
  if (!is_address(path)) return path_exists(path) ? open(path) : nullptr;
  try {
    return open(path);
  } catch (const IoError& error) {
    if (error.err == ENOENT || error.err == EACCES) return nullptr;
    throw;
  }
}

TokenFile token_file(const std::shared_ptr<SourceFile>& file) {
  Shard shard = file->shard();
  return {file->local() != nullptr ? file->local()->shard().path : std::move(shard.path),
          shard.size_bytes, [file](std::uint64_t offset, std::span<std::byte> out) {
            file->read_exact(offset, out);
          }};
}

}  // namespace lowtide
