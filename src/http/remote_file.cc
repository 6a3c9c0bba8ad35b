#include "http/remote_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "core/hash.h"
#include "core/mutex.h"
#include "http/address.h"
#include "http/s3.h"
#include "lowtide/error.h"
#include "lowtide/interrupt.h"

namespace lowtide {
namespace {

constexpr std::chrono::milliseconds kAskOpening{50};

// A request that the calling thread waits for, and stops waiting for if it has a WaitHook.
class WaitedRequest final : public HttpRequest {
 public:
  explicit WaitedRequest(std::span<std::byte> out) : out_(out) {}

  void take(std::uint64_t at, std::span<const std::byte> bytes, std::uint32_t*) noexcept override {
    std::memcpy(out_.data() + (at - offset_bytes), bytes.data(), bytes.size());
  }
  void opened(const Answer& answer, std::uint64_t total_bytes) noexcept override {
    total_bytes_ = total_bytes;
    try {
      etag_ = answer.has_strong_etag() ? answer.etag : "";
      modified_ = answer.modified;
    } catch (...) {
      etag_.clear();  // out of memory: then without a version
    }
  }
  void done(const HttpResult& result) noexcept override {
    const MutexLock lock(mutex_);
    result_ = result;
    finished_ = true;
    changed_.notify_one();
  }
  [[nodiscard]] HttpResult run(Transport& transport) {
    transport.submit(*this);
    MutexLock lock(mutex_);
    WaitHook* const hook = WaitHook::current();
    while (!finished_) {
      if (hook == nullptr) {
        changed_.wait(mutex_);
      } else if (!changed_.wait_until(mutex_, CondVar::Clock::now() + kAskOpening)) {
        lock.unlock();
        if (hook->stop()) stopped_.store(true, std::memory_order_relaxed);
        lock.lock();
      }
    }
    if (result_.fault == HttpFault::cancelled) throw Interrupted();
    return result_;
  }
  [[nodiscard]] bool cancelled() const noexcept override {
    return stopped_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t total_bytes() const { return total_bytes_; }
  [[nodiscard]] const std::string& etag() const { return etag_; }
  [[nodiscard]] const std::string& modified() const { return modified_; }

 private:
  const std::span<std::byte> out_;
  std::uint64_t total_bytes_ = 0;
  std::string etag_, modified_;
  std::atomic<bool> stopped_{false};
  Mutex mutex_;
  CondVar changed_;
  bool finished_ LOWTIDE_GUARDED_BY(mutex_) = false;
  HttpResult result_ LOWTIDE_GUARDED_BY(mutex_);
};

std::shared_ptr<Remote> remote_of(const std::string& address, const std::string& shown,
                                  const std::shared_ptr<Asker>& asker) {
  auto remote = std::make_shared<Remote>();
  if (asker != nullptr) {
    remote->signer = Asker::signer(asker, address);
    // Where it leads first; later requests ask the signer.
    const std::optional<SignedUrl> first = remote->signer->sign("", /*again=*/false);
    if (!first)
      throw IoError(EACCES, "open", shown, std::nullopt, "what store returned has expired");
    remote->url = first->url;
  } else if (parse_scheme(address) == "s3") {
    const S3Name name = parse_s3(address);
    const S3Place place = find_s3_place(shown);
    remote->url = s3_address(name, place).url();
    remote->signer = make_s3_signer(place.region);
  } else {
    remote->url = parse_http(address).url();
  }
  return remote;
}

std::uint64_t version_of(const WaitedRequest& answer) {
  const auto hashed = [](std::uint64_t hash, const std::string& text) {
    return hash_with(hash, std::as_bytes(std::span(text)));
  };
  return hashed(hashed(hash_with(0, answer.total_bytes()), answer.etag()), answer.modified());
}

}  // namespace

RemoteFile::RemoteFile(std::shared_ptr<Transport> transport, const std::string& address,
                       const std::shared_ptr<Asker>& asker)
    : transport_(std::move(transport)) {
  shard_.path = shown_address(address);
  std::shared_ptr<Remote> remote = remote_of(address, shard_.path, asker);
  first_.resize(kFirstBytes);
  WaitedRequest request(first_);
  request.object = remote;
  request.size_bytes = kFirstBytes;
  request.opens = true;
  const HttpResult result = request.run(*transport_);
  if (!result.ok()) {
    throw IoError(errno_of(result), "open", shard_.path, std::nullopt, describe(result));
  }
  shard_.size_bytes = request.total_bytes();
  shard_.version = version_of(request);
  first_.resize(std::min(kFirstBytes, shard_.size_bytes));
  auto found = std::make_shared<Remote>(*remote);
  found->etag = request.etag();
  found->modified = request.modified();
  shard_.remote = std::move(found);
}

void RemoteFile::read_exact(std::uint64_t offset_bytes, std::span<std::byte> out) const {
  if (out.empty()) return;
  if (offset_bytes > shard_.size_bytes || out.size() > shard_.size_bytes - offset_bytes) {
    throw FormatError(
        shard_.path + ": the file ends early: expected " + std::to_string(out.size()) +
        " bytes at byte " + std::to_string(offset_bytes) + ", found " +
        std::to_string(shard_.size_bytes - std::min(shard_.size_bytes, offset_bytes)));
  }
  if (offset_bytes + out.size() <= first_.size()) {
    std::memcpy(out.data(), first_.data() + offset_bytes, out.size());
    return;
  }
  WaitedRequest request(out);
  request.object = shard_.remote;
  request.offset_bytes = offset_bytes;
  request.size_bytes = out.size();
  request.object_bytes = shard_.size_bytes;
  const HttpResult result = request.run(*transport_);
  if (result.ok()) return;
  throw IoError(errno_of(result), "read", shard_.path, std::nullopt,
                "bytes " + std::to_string(offset_bytes) + "-" +
                    std::to_string(offset_bytes + out.size() - 1) + ": " + describe(result));
}

}  // namespace lowtide
