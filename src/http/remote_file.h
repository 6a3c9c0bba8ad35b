// remote_file.h - one object on a server, opened: its size, its version, and its first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/extent.h"
#include "core/remote.h"
#include "http/asked_signer.h"
#include "http/transport.h"

namespace lowtide {

// Holds up to 64 KiB, in which nearly every header lies, so that opening takes one request. Any
// thread.
class RemoteFile {
 public:
  static constexpr std::uint64_t kFirstBytes = 64 * 1024;

  // `address` is http://, https:// or s3://. `asker` signs; nullptr: s3:// is signed with the keys
  // of the environment, others are not. Throws std::invalid_argument for a malformed one, and
  // IoError with the errno of errno_of().
  RemoteFile(std::shared_ptr<Transport> transport, const std::string& address,
             const std::shared_ptr<Asker>& asker = nullptr);

  // Its path is the address without secrets.
  [[nodiscard]] const Shard& shard() const { return shard_; }
  // As File::read_exact.
  void read_exact(std::uint64_t offset_bytes, std::span<std::byte> out) const;

 private:
  std::shared_ptr<Transport> transport_;
  Shard shard_;
  std::vector<std::byte> first_;
};

}  // namespace lowtide
