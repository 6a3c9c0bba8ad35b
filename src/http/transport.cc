#include "http/transport.h"

#include <cerrno>
#include <exception>

#include "http/curl.h"
#include "http/reactor.h"
#include "lowtide/address.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

const Curl& curl_or_throw() {
  std::string why;
  const Curl* const curl = load_curl(&why);
  if (curl == nullptr) throw IoError(ENOSYS, "http", "", std::nullopt, why);
  return *curl;
}

}  // namespace

Transport::Transport(const TransportOptions& options)
    : reactor_(std::make_unique<Reactor>(curl_or_throw(), options)) {}

Transport::~Transport() = default;

void Transport::submit(HttpRequest& request) noexcept {
  try {
    reactor_->submit(request);
  } catch (const std::exception& error) {
    const bool thread = dynamic_cast<const IoError*>(&error) != nullptr;
    request.done({.fault = thread ? HttpFault::no_thread : HttpFault::no_memory});
  }
}

TransportCounts Transport::counts() const noexcept {
  return reactor_->counts();
}

std::string Transport::probe() {
  std::string why;
  (void)load_curl(&why);
  return why;
}

bool Transport::built_in() noexcept {
  return true;
}

std::string why_no_http() {
  return Transport::probe();
}

}  // namespace lowtide
