#include "http/attempt.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "core/clock.h"
#include "http/redirect.h"

namespace lowtide {
namespace {

constexpr long kReceiveBytes = 32 * 1024;        // libcurl's buffer of one transfer
constexpr std::uint64_t kMostDiscarded = 65536;  // of a refusal; then the connection is dropped
constexpr long kPreReqOk = 0, kPreReqAbort = 1;  // CURL_PREREQFUNC_OK, _ABORT

}  // namespace

Attempt::Attempt(const Curl& curl) : curl_(curl), easy_(curl.easy_init()) {
  if (easy_ == nullptr) throw std::bad_alloc();
}

Attempt::~Attempt() {
  curl_.easy_cleanup(easy_);
  curl_.slist_free_all(headers_);
}

bool Attempt::start(Transfer& transfer, const AttemptSettings& settings, bool hedge) {
  const HttpRequest& request = *transfer.request;
  hedge_ = hedge;
  answer_.clear();
  judged_ = empty_ = false;
  verdict_ = HttpFault::none;
  begin_bytes_ = request.offset_bytes + transfer.reached_bytes;
  wanted_bytes_ = request.size_bytes - transfer.reached_bytes;
  received_bytes_ = found_bytes_ = refusal_bytes_ = discarded_bytes_ = 0;
  cursor_ = 0;
  byte_ns_ = first_byte_ns_ = 0;
  sent_ns_ = now_ns();
  SignedUrl with;
  const std::shared_ptr<const Signer>& signer = request.object->signer;
  // After a redirect the URL is the one that the server gave, and no credential goes with it.
  if (transfer.redirected || signer == nullptr) {
    with.url = transfer.target.url();
  } else {
    std::optional<SignedUrl> found = signer->sign(transfer.target.url(), transfer.sign_again);
    transfer.sign_again = false;
    if (!found) return false;
    with = *std::move(found);
    // On the same server the credentials stay, and the URL is the one that it gave. A redirect is
    // judged by where it comes from.
    if (transfer.redirects > 0) with.url = transfer.target.url();
    transfer.target = parse_http(with.url);
  }
  transfer_ = &transfer;
  curl_.easy_reset(easy_);
  set_options(settings);
  set_headers(with);
  curl_.easy_setopt(easy_, CURLOPT_URL, with.url.c_str());
  if (!request.whole) {
    const std::string range =
        std::to_string(begin_bytes_) + "-" + std::to_string(begin_bytes_ + wanted_bytes_ - 1);
    curl_.easy_setopt(easy_, CURLOPT_RANGE, range.c_str());
  }
  if (!with.access_key.empty()) {
    const std::string provider = "aws:amz:" + with.region + ":s3";
    curl_.easy_setopt(easy_, CURLOPT_AWS_SIGV4, provider.c_str());
    curl_.easy_setopt(easy_, CURLOPT_USERNAME, with.access_key.c_str());
    curl_.easy_setopt(easy_, CURLOPT_PASSWORD, with.secret_key.c_str());
  }
  return true;
}

void Attempt::set_options(const AttemptSettings& settings) {
  by_proxy_ = settings.by_proxy;
  curl_.easy_setopt(easy_, CURLOPT_PRIVATE, static_cast<void*>(this));
  curl_.easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_.easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_.easy_setopt(easy_, CURLOPT_FOLLOWLOCATION, 0L);
  curl_.easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_.easy_setopt(easy_, CURLOPT_PATH_AS_IS, 1L);
  curl_.easy_setopt(easy_, CURLOPT_BUFFERSIZE, kReceiveBytes);
  curl_.easy_setopt(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_.easy_setopt(easy_, CURLOPT_USERAGENT, "lowtide");
  curl_.easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &Attempt::on_header);
  curl_.easy_setopt(easy_, CURLOPT_HEADERDATA, static_cast<void*>(this));
  curl_.easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &Attempt::on_body);
  curl_.easy_setopt(easy_, CURLOPT_WRITEDATA, static_cast<void*>(this));
  curl_.easy_setopt(easy_, CURLOPT_PREREQFUNCTION, &Attempt::on_connected);
  curl_.easy_setopt(easy_, CURLOPT_PREREQDATA, static_cast<void*>(this));
  if (curl_.trust_file != nullptr) {
    // The name stays with the reactor, which outlives every attempt.
    curl_.easy_setopt(easy_, CURLOPT_SSL_CTX_FUNCTION, curl_.trust_file);
    curl_.easy_setopt(easy_, CURLOPT_SSL_CTX_DATA, settings.authorities);
  } else if (*settings.authorities != '\0') {
    curl_.easy_setopt(easy_, CURLOPT_CAINFO, settings.authorities);
  }
}

void Attempt::add_header(const std::string& line) {
  // A line end inside would begin a header of its own.
  if (line.find_first_of("\r\n") != line.npos) return;
  curl_slist* const longer = curl_.slist_append(headers_, line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  headers_ = longer;
}

void Attempt::set_headers(const SignedUrl& with) {
  curl_.slist_free_all(headers_);
  headers_ = nullptr;
  for (const std::string& line : with.headers) add_header(line);
  const Remote& object = *transfer_->request->object;
  if (!object.etag.empty()) {
    add_header("If-Match: " + object.etag);
  } else if (!object.modified.empty()) {
    add_header("If-Unmodified-Since: " + object.modified);
  }
  curl_.easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
}

std::size_t Attempt::on_header(char* data, std::size_t, std::size_t size, void* self) {
  try {
    static_cast<Attempt*>(self)->answer_.take_line({data, size});
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return size;
}

std::size_t Attempt::on_body(char* data, std::size_t, std::size_t size, void* self) {
  return static_cast<Attempt*>(self)->take(data, size);
}

// The name of a host says little about the machine behind it, so the address counts as well.
int Attempt::on_connected(void* self, char* remote_ip, char*, int, int) {
  Attempt& attempt = *static_cast<Attempt*>(self);
  const Transfer& transfer = *attempt.transfer_;
  if (!transfer.redirected || attempt.by_proxy_ || !is_inner_host(remote_ip)) return kPreReqOk;
  try {
    // The first address was given by the user, who may name any machine.
    if (is_inner_host(parse_http(transfer.request->object->url).host)) return kPreReqOk;
  } catch (const std::exception&) {
  }
  attempt.judged_ = true;
  attempt.verdict_ = HttpFault::redirect;
  return kPreReqAbort;
}

std::size_t Attempt::take(const char* data, std::size_t size) {
  if (!judged_) judge();
  if (empty_) return size;
  if (verdict_ == HttpFault::none) {
    if (size > wanted_bytes_ - received_bytes_) {
      verdict_ = HttpFault::wrong_range;
      return 0;
    }
    byte_ns_ = now_ns();
    if (first_byte_ns_ == 0) first_byte_ns_ = byte_ns_ - sent_ns_;
    transfer_->request->take(begin_bytes_ + received_bytes_,
                             {reinterpret_cast<const std::byte*>(data), size}, &cursor_);
    received_bytes_ += size;
    const std::uint64_t reached = begin_bytes_ + received_bytes_ - transfer_->request->offset_bytes;
    if (!transfer_->request->whole)
      transfer_->reached_bytes = std::max(transfer_->reached_bytes, reached);
    if (reached > transfer_->furthest_bytes) {
      transfer_->furthest_bytes = reached;
      transfer_->progress_ns = byte_ns_;
    }
    return size;
  }
  // A refusal explains itself; the body of any other answer may be as long as the object.
  if (verdict_ != HttpFault::status) return 0;
  const std::size_t kept = std::min(size, refusal_.size() - refusal_bytes_);
  std::memcpy(refusal_.data() + refusal_bytes_, data, kept);
  refusal_bytes_ += kept;
  discarded_bytes_ += size;
  return discarded_bytes_ > kMostDiscarded ? 0 : size;
}

// Decides what the answer is worth before its first byte is taken.
void Attempt::judge() {
  judged_ = true;
  const bool opens = transfer_->request->opens;
  if (transfer_->request->whole) {
    if (answer_.status != 200) verdict_ = HttpFault::status;
    if (answer_.encoded) verdict_ = HttpFault::encoded;
    return;
  }
  if (answer_.status == 206) {
    if (answer_.encoded) {
      verdict_ = HttpFault::encoded;
    } else if (!answer_.range || !answer_.range->has_bytes()) {
      verdict_ = HttpFault::wrong_range;
    } else {
      judge_range(*answer_.range);
    }
    return;
  }
  if (answer_.status >= 200 && answer_.status < 300) {
    // An empty object has no range; many servers then answer 200.
    const bool empty = opens && answer_.length_bytes == 0U;
    if (!empty) verdict_ = HttpFault::no_range;
    if (empty) found_empty();
    return;
  }
  const bool beyond = answer_.status == 416 && answer_.range && answer_.range->total;
  if (beyond && opens && *answer_.range->total == 0) {
    found_empty();
  } else if (beyond) {
    verdict_ = HttpFault::ended;
    found_bytes_ = *answer_.range->total;
  } else {
    verdict_ = HttpFault::status;
  }
}

void Attempt::found_empty() {
  empty_ = true;
  transfer_->request->opened(answer_, 0);
}

void Attempt::judge_range(const ContentRange& range) {
  const HttpRequest& request = *transfer_->request;
  const std::uint64_t last = begin_bytes_ + wanted_bytes_ - 1;
  if (range.first != begin_bytes_ || range.last > last) {
    verdict_ = HttpFault::wrong_range;
  } else if (request.opens) {
    if (!range.total || range.last != std::min(last, *range.total - 1)) {
      verdict_ = HttpFault::wrong_range;
      return;
    }
    wanted_bytes_ = range.last - range.first + 1;
    transfer_->request->opened(answer_, *range.total);
  } else if (range.total && *range.total != request.object_bytes) {
    const bool shorter = *range.total < request.object_bytes;
    verdict_ = shorter ? HttpFault::ended : HttpFault::changed;
    found_bytes_ = *range.total;
  } else if (range.last != last) {
    verdict_ = HttpFault::wrong_range;
  }
}

HttpFault Attempt::fault_of(CURLcode code) const {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return HttpFault::no_host;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
      return HttpFault::proxy;
    case CURLE_COULDNT_CONNECT:
      return HttpFault::refused;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpFault::stalled;
    case CURLE_SSL_CACERT_BADFILE:
      return HttpFault::authorities;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
      return HttpFault::tls;
    case CURLE_SSL_CONNECT_ERROR:
      return HttpFault::handshake;
    case CURLE_OUT_OF_MEMORY:
      return HttpFault::no_memory;
    default:
      return HttpFault::cut;
  }
}

HttpResult Attempt::finish(CURLcode code) {
  HttpResult result{.status = answer_.status, .tries = transfer_->tries};
  if (code == CURLE_OK && !judged_) judge();
  // libcurl knows whether an answer of any length is complete.
  const bool complete = empty_ || transfer_->request->whole || received_bytes_ == wanted_bytes_;
  if (code == CURLE_OK && complete && verdict_ == HttpFault::none) return result;
  if (verdict_ == HttpFault::status) {
    result.fault = fault_of_refusal(answer_.status, {refusal_.data(), refusal_bytes_});
  } else if (verdict_ != HttpFault::none) {
    result.fault = verdict_;
    result.found_bytes = found_bytes_;
  } else {
    // Fewer bytes than the head of the answer promised: the connection broke, whatever libcurl
    // says.
    result.fault = code == CURLE_OK ? HttpFault::cut : fault_of(code);
  }
  return result;
}

}  // namespace lowtide
