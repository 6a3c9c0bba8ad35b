// Takes the place of the transport in a build without http.
#include <cerrno>

#include "http/transport.h"
#include "lowtide/address.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr const char* kWithout =
    "this build of Lowtide has no HTTP support: it was configured with LOWTIDE_HTTP=OFF";

}  // namespace

class Transport::Reactor {};

Transport::Transport(const TransportOptions&) {
  throw IoError(ENOSYS, "http", "", std::nullopt, kWithout);
}
Transport::~Transport() = default;

void Transport::submit(HttpRequest& request) noexcept {
  request.done({.fault = HttpFault::no_library});
}
TransportCounts Transport::counts() const noexcept {
  return {};
}
std::string Transport::probe() {
  return kWithout;
}
bool Transport::built_in() noexcept {
  return false;
}

std::string why_no_http() {
  return Transport::probe();
}

}  // namespace lowtide
