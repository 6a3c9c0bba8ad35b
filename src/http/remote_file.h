// remote_file.h - one object on a server, opened: its size, its version, and its first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
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
  // of the environment, others are not. `first_bytes`: how many it holds, at least 1. Throws
  // std::invalid_argument for a malformed one, and IoError with the errno of errno_of().
  RemoteFile(std::shared_ptr<Transport> transport, const std::string& address,
             const std::shared_ptr<Asker>& asker = nullptr,
             std::uint64_t first_bytes = kFirstBytes);

  // Its path is the address without secrets.
  [[nodiscard]] const Shard& shard() const { return shard_; }
  // As File::read_exact.
  void read_exact(std::uint64_t offset_bytes, std::span<std::byte> out) const;

  // Opens many at the same time, without their first bytes; nullptr for one that does not exist.
  // Throws for the first one that cannot be opened for another reason.
  [[nodiscard]] static std::vector<std::shared_ptr<RemoteFile>> open_all(
      const std::shared_ptr<Transport>& transport, std::span<const std::string> addresses,
      const std::shared_ptr<Asker>& asker);
  struct Range {
    const RemoteFile* file = nullptr;
    std::uint64_t offset_bytes = 0;
    std::span<std::byte> out = {};
  };
  // Reads many ranges at the same time. Throws as read_exact for the first one that fails.
  static void read_all(std::span<const Range> ranges);

 private:
  RemoteFile(std::shared_ptr<Transport> transport, Shard shard)
      : transport_(std::move(transport)), shard_(std::move(shard)) {}

  std::shared_ptr<Transport> transport_;
  Shard shard_;
  std::vector<std::byte> first_;
};

}  // namespace lowtide
