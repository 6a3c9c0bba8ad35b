#include "http/s3.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <span>
#include <utility>

#include "core/mutex.h"
#include "core/quote.h"
#include "http/listing.h"
#include "http/transport.h"
#include "http/waited_request.h"
#include "lowtide/error.h"
#include "os/file.h"
#include "os/paths.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kMostCredentialsBytes = 1024 * 1024;

// A variable that is set to something.
std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string text_of(const std::string& path) {
  const File file(path);
  std::string text(std::min(file.shard().size_bytes, kMostCredentialsBytes), '\0');
  file.read_exact(0, std::as_writable_bytes(std::span(text)));
  return text;
}

// A page of a list: up to 1000 names of up to 1 KiB, in a text that may be several times as long.
class PageRequest final : public WaitedRequest {
 public:
  static constexpr std::uint64_t kMostBytes = 32 * 1024 * 1024;

  PageRequest() {
    size_bytes = kMostBytes;
    whole = true;
  }
  void take(std::uint64_t at, std::span<const std::byte> bytes, std::uint32_t*) noexcept override {
    try {
      text_.resize(at);  // another try begins anew
      text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } catch (const std::bad_alloc&) {
      failed_ = true;
    }
  }
  // Throws std::bad_alloc if there was no room for it.
  [[nodiscard]] const std::string& text() const {
    if (failed_) throw std::bad_alloc();
    return text_;
  }

 private:
  std::string text_;
  bool failed_ = false;
};

class S3Signer final : public Signer {
 public:
  explicit S3Signer(std::string region) : region_(std::move(region)), keys_(find_s3_keys()) {}

  std::optional<SignedUrl> sign(const std::string& url, bool again) const override {
    const MutexLock lock(mutex_);
    if (again) keys_ = find_s3_keys();
    SignedUrl with;
    with.url = url;
    if (!keys_) return with;
    with.region = region_;
    with.access_key = keys_->access_key;
    with.secret_key = keys_->secret_key;
    // The body of a GET is empty, and over TLS nobody changes it.
    with.headers.emplace_back("x-amz-content-sha256: UNSIGNED-PAYLOAD");
    if (!keys_->token.empty()) with.headers.push_back("x-amz-security-token: " + keys_->token);
    return with;
  }

 private:
  const std::string region_;
  mutable Mutex mutex_;
  mutable std::optional<S3Keys> keys_ LOWTIDE_GUARDED_BY(mutex_);
};

}  // namespace

std::optional<S3Keys> parse_credentials(std::string_view text, std::string_view profile) {
  S3Keys keys;
  bool inside = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = without_blanks(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('#') || line.starts_with(';')) continue;
    if (line.starts_with('[')) {
      inside = line.ends_with(']') && without_blanks(line.substr(1, line.size() - 2)) == profile;
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!inside || equals == line.npos) continue;
    const std::string_view name = without_blanks(line.substr(0, equals));
    const std::string_view value = without_blanks(line.substr(equals + 1));
    if (name == "aws_access_key_id") keys.access_key = value;
    if (name == "aws_secret_access_key") keys.secret_key = value;
    if (name == "aws_session_token") keys.token = value;
  }
  if (keys.access_key.empty() || keys.secret_key.empty()) return std::nullopt;
  return keys;
}

std::optional<S3Keys> find_s3_keys() {
  const auto access = variable("AWS_ACCESS_KEY_ID"), secret = variable("AWS_SECRET_ACCESS_KEY");
  if (access && secret) {
    return S3Keys{*access, *secret, variable("AWS_SESSION_TOKEN").value_or("")};
  }
  const auto home = variable("HOME");
  const std::string path = variable("AWS_SHARED_CREDENTIALS_FILE")
                               .value_or(home ? *home + "/.aws/credentials" : std::string());
  if (path.empty() || !path_exists(path)) return std::nullopt;
  return parse_credentials(text_of(path), variable("AWS_PROFILE").value_or("default"));
}

S3Place find_s3_place(const std::string& shown) {
  S3Place place;
  place.endpoint = variable("AWS_ENDPOINT_URL_S3");
  if (!place.endpoint) place.endpoint = variable("AWS_ENDPOINT_URL");
  std::optional<std::string> region = variable("AWS_REGION");
  if (!region) region = variable("AWS_DEFAULT_REGION");
  if (!region && !place.endpoint) {
    throw IoError(EINVAL, "open", shown, std::nullopt,
                  "the region of the bucket is not known; set AWS_REGION, or AWS_ENDPOINT_URL for "
                  "a server other than AWS");
  }
  place.region = region.value_or("us-east-1");
  // It becomes part of a host and of a signature.
  if (place.region.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") !=
      std::string::npos) {
    throw IoError(EINVAL, "open", shown, std::nullopt,
                  "the region " + excerpt(place.region) +
                      " contains a character that is not allowed; set AWS_REGION to a name such as "
                      "eu-west-1");
  }
  return place;
}

std::vector<std::string> list_bucket(const std::string& beginning, bool deep) {
  const std::string shown = shown_address(beginning);
  S3Name name = parse_s3(beginning + "x");  // a beginning may be the bucket alone
  name.key.pop_back();
  const std::string prefix = std::exchange(name.key, "");
  const std::string bucket = beginning.substr(0, beginning.size() - prefix.size());
  const S3Place place = find_s3_place(shown);
  const std::string url = s3_address(name, place).url();
  const std::shared_ptr<const Signer> signer = make_s3_signer(place.region);
  Transport transport({.most_in_flight = 1, .hedge = false, .retry = {}});
  std::vector<std::string> found;
  for (std::string next;;) {
    auto page = std::make_shared<Remote>();
    page->url = url + listing_query(prefix, deep, next);
    page->signer = signer;
    PageRequest request;
    request.object = std::move(page);
    const HttpResult result = request.run(transport);
    if (!result.ok())
      throw IoError(errno_of(result), "list", shown, std::nullopt, describe(result));
    ListingPage listed = parse_listing(request.text(), shown);
    for (const std::string& key : listed.keys) found.push_back(bucket + key);
    if (listed.next.empty()) return found;
    if (listed.next == next)
      throw FormatError(shown + ": the server keeps returning the same page of its list");
    next = std::move(listed.next);
  }
}

std::shared_ptr<const Signer> make_s3_signer(const std::string& region) {
  return std::make_shared<S3Signer>(region);
}

}  // namespace lowtide
