// source_file.h - a file while it is opened: local, or an object on a server. What follows the
// header is read by the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/extent.h"
#include "http/asked_signer.h"
#include "http/remote_file.h"
#include "http/transport.h"
#include "lowtide/address.h"
#include "os/file.h"
#include "token_format/tokens.h"

namespace lowtide {

class SourceFile {
 public:
  explicit SourceFile(std::shared_ptr<File> file) : local_(std::move(file)) {}
  explicit SourceFile(std::shared_ptr<RemoteFile> file) : remote_(std::move(file)) {}

  // With the whole path of a local file, and with the address of an object without its secrets.
  [[nodiscard]] Shard shard() const;
  void read_exact(std::uint64_t offset_bytes, std::span<std::byte> out) const;
  // nullptr for an object.
  [[nodiscard]] const std::shared_ptr<File>& local() const { return local_; }
  // nullptr for a local file.
  [[nodiscard]] const std::shared_ptr<RemoteFile>& remote() const { return remote_; }

 private:
  std::shared_ptr<File> local_;
  std::shared_ptr<RemoteFile> remote_;
};

// Opens the files of one call; objects over the same connections. One thread.
class SourceOpener {
 public:
  // `sign` may be nullptr. `first_bytes`: of each object, RemoteFile holds as many.
  explicit SourceOpener(const SignRequest& sign,
                        std::uint64_t first_bytes = RemoteFile::kFirstBytes);

  // Throws as File, and as RemoteFile for an address.
  [[nodiscard]] std::shared_ptr<SourceFile> open(const std::string& path);
  // The same, nullptr if there is no such file or object. A server that does not let us list a
  // bucket answers 403 for objects that do not exist.
  [[nodiscard]] std::shared_ptr<SourceFile> open_if_there(const std::string& path);
  // As RemoteFile::open_all.
  [[nodiscard]] std::vector<std::shared_ptr<RemoteFile>> open_objects(
      std::span<const std::string> addresses);

 private:
  [[nodiscard]] const std::shared_ptr<Transport>& transport(const std::string& address);

  const std::uint64_t first_bytes_;
  std::shared_ptr<Asker> asker_;          // nullptr: nobody signs
  std::shared_ptr<Transport> transport_;  // made for the first object
};

// A file as a token format sees it. The result keeps the file open.
[[nodiscard]] TokenFile token_file(const std::shared_ptr<SourceFile>& file);

}  // namespace lowtide
