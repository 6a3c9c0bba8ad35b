#include "http/remote_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <utility>

#include "core/hash.h"
#include "http/address.h"
#include "http/s3.h"
#include "http/waited_request.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

// Fills a buffer.
class ReadRequest final : public WaitedRequest {
 public:
  explicit ReadRequest(std::span<std::byte> out) : out_(out) {}
  ~ReadRequest() override { abandon(); }

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

  [[nodiscard]] std::uint64_t total_bytes() const { return total_bytes_; }
  [[nodiscard]] const std::string& etag() const { return etag_; }
  [[nodiscard]] const std::string& modified() const { return modified_; }

 private:
  const std::span<std::byte> out_;
  std::uint64_t total_bytes_ = 0;
  std::string etag_, modified_;
};

std::shared_ptr<Remote> remote_of(const std::string& address, const std::string& shown,
                                  const std::shared_ptr<Asker>& asker) {
  auto remote = std::make_shared<Remote>();
  if (asker != nullptr) {
    remote->signer = Asker::signer(asker, address);
    // Where it leads first; later requests ask the signer.
    const std::optional<SignedUrl> first = remote->signer->sign("", /*again=*/false);
    if (!first)
      throw IoError(EACCES, "open", shown, std::nullopt,
                    "the signature that store returned has already expired");
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

std::uint64_t version_of(const ReadRequest& answer) {
  const auto hashed = [](std::uint64_t hash, const std::string& text) {
    return hash_with(hash, std::as_bytes(std::span(text)));
  };
  return hashed(hashed(hash_with(0, answer.total_bytes()), answer.etag()), answer.modified());
}

// An object that is on its way to being opened.
class Opening {
 public:
  Opening(Transport& transport, const std::string& address, const std::shared_ptr<Asker>& asker,
          std::uint64_t first_bytes)
      : shown_(shown_address(address)),
        remote_(remote_of(address, shown_, asker)),
        first_(first_bytes),
        request_(first_) {
    request_.object = remote_;
    request_.size_bytes = first_bytes;
    request_.opens = true;
    request_.start(transport);
  }

  // Throws unless it is there; false: it does not exist.
  [[nodiscard]] bool wait() {
    const HttpResult result = request_.wait();
    if (result.ok()) return true;
    if (errno_of(result) != ENOENT)
      throw IoError(errno_of(result), "open", shown_, std::nullopt, describe(result));
    absent_ = describe(result);
    return false;
  }
  [[noreturn]] void throw_absent() const {
    throw IoError(ENOENT, "open", shown_, std::nullopt, absent_);
  }
  // Requires that wait() returned true.
  [[nodiscard]] Shard shard() const {
    auto found = std::make_shared<Remote>(*remote_);
    found->etag = request_.etag();
    found->modified = request_.modified();
    return {shown_, request_.total_bytes(), version_of(request_), std::move(found)};
  }
  [[nodiscard]] std::vector<std::byte> take_first() { return std::move(first_); }

 private:
  const std::string shown_;
  const std::shared_ptr<const Remote> remote_;
  std::vector<std::byte> first_;
  std::string absent_;
  ReadRequest request_;  // writes to first_, so it ends before
};

// A range of an object that is on its way.
class Reading {
 public:
  // `first`: the bytes of the object that are here already.
  Reading(Transport& transport, const Shard& shard, std::span<const std::byte> first,
          std::uint64_t offset_bytes, std::span<std::byte> out)
      : shard_(shard), request_(out) {
    if (offset_bytes > shard.size_bytes || out.size() > shard.size_bytes - offset_bytes) {
      throw FormatError(
          shard.path + ": the file ends early: expected " + std::to_string(out.size()) +
          " bytes at byte " + std::to_string(offset_bytes) + ", found " +
          std::to_string(shard.size_bytes - std::min(shard.size_bytes, offset_bytes)));
    }
    if (offset_bytes + out.size() <= first.size()) {
      std::ranges::copy(first.subspan(offset_bytes, out.size()), out.begin());
      return;
    }
    if (out.empty()) return;
    request_.object = shard.remote;
    request_.offset_bytes = offset_bytes;
    request_.size_bytes = out.size();
    request_.object_bytes = shard.size_bytes;
    sent_ = true;
    request_.start(transport);
  }

  void wait() {
    if (!sent_) return;
    const HttpResult result = request_.wait();
    if (result.ok()) return;
    throw IoError(errno_of(result), "read", shard_.path, std::nullopt,
                  "bytes " + std::to_string(request_.offset_bytes) + "-" +
                      std::to_string(request_.offset_bytes + request_.size_bytes - 1) + ": " +
                      describe(result));
  }

 private:
  const Shard& shard_;
  bool sent_ = false;
  ReadRequest request_;
};

}  // namespace

RemoteFile::RemoteFile(std::shared_ptr<Transport> transport, const std::string& address,
                       const std::shared_ptr<Asker>& asker, std::uint64_t first_bytes)
    : transport_(std::move(transport)) {
  Opening opening(*transport_, address, asker, first_bytes);
  if (!opening.wait()) opening.throw_absent();
  shard_ = opening.shard();
  first_ = opening.take_first();
  first_.resize(std::min(first_bytes, shard_.size_bytes));
}

std::vector<std::shared_ptr<RemoteFile>> RemoteFile::open_all(
    const std::shared_ptr<Transport>& transport, std::span<const std::string> addresses,
    const std::shared_ptr<Asker>& asker) {
  std::deque<Opening> openings;
  for (const std::string& address : addresses) openings.emplace_back(*transport, address, asker, 1);
  std::vector<std::shared_ptr<RemoteFile>> files;
  for (Opening& opening : openings) {
    files.push_back(opening.wait()
                        ? std::shared_ptr<RemoteFile>(new RemoteFile(transport, opening.shard()))
                        : nullptr);
  }
  return files;
}

void RemoteFile::read_exact(std::uint64_t offset_bytes, std::span<std::byte> out) const {
  const Range range{.file = this, .offset_bytes = offset_bytes, .out = out};
  read_all({&range, 1});
}

void RemoteFile::read_all(std::span<const Range> ranges) {
  std::deque<Reading> readings;
  for (const auto& [file, offset_bytes, out] : ranges)
    readings.emplace_back(*file->transport_, file->shard_, file->first_, offset_bytes, out);
  for (Reading& reading : readings) reading.wait();
}

}  // namespace lowtide
