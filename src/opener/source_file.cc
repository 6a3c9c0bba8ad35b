#include "opener/source_file.h"

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

SourceOpener::SourceOpener(const SignRequest& sign, std::uint64_t first_bytes)
    : first_bytes_(first_bytes), asker_(sign ? std::make_shared<Asker>(sign) : nullptr) {}

const std::shared_ptr<Transport>& SourceOpener::transport(const std::string& address) {
  if (transport_ == nullptr) {
    try {
      transport_ = std::make_shared<Transport>();
    } catch (const IoError& error) {
      throw IoError(error.err, "open", shown_address(address), std::nullopt, Transport::probe());
    }
  }
  return transport_;
}

std::shared_ptr<SourceFile> SourceOpener::open(const std::string& path) {
  if (!is_address(path)) return std::make_shared<SourceFile>(std::make_shared<File>(path));
  return std::make_shared<SourceFile>(
      std::make_shared<RemoteFile>(transport(path), path, asker_, first_bytes_));
}

std::vector<std::shared_ptr<RemoteFile>> SourceOpener::open_objects(
    std::span<const std::string> addresses) {
  if (addresses.empty()) return {};
  return RemoteFile::open_all(transport(addresses[0]), addresses, asker_);
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
