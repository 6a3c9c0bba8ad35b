#include "store.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "bindings.h"
#include "gil.h"

namespace lowtide::python {
namespace {

void take_headers(const nb::object& headers, SignedRequest* out) {
  if (!nb::isinstance<nb::dict>(headers)) throw nb::type_error("store: headers must be a dict");
  for (const auto [name, value] : nb::borrow<nb::dict>(headers)) {
    std::pair<std::string, std::string> entry;
    if (!nb::try_cast<std::string>(name, entry.first) ||
        !nb::try_cast<std::string>(value, entry.second)) {
      throw nb::type_error("store: headers must be a dict of str");
    }
    out->headers.push_back(std::move(entry));
  }
}

// A Python object that threads of the core hold: it is released with the GIL, and not at all once
// the interpreter ends.
class HeldStore {
 public:
  explicit HeldStore(nb::handle store) : store_(store.inc_ref()) {}
  ~HeldStore() {
    if (!Locked::possible()) return;
    const Locked locked;
    store_.dec_ref();
  }
  HeldStore(const HeldStore&) = delete;
  HeldStore& operator=(const HeldStore&) = delete;

  [[nodiscard]] SignedRequest sign(const std::string& address) const {
    const Locked locked;
    const nb::object answer = store_(nb::str(address.data(), address.size()));
    if (!nb::isinstance<nb::tuple>(answer) || nb::len(answer) != 3) {
      throw nb::type_error("store must return a tuple of url, headers and expires");
    }
    SignedRequest out;
    if (!nb::try_cast<std::string>(answer[0], out.url)) {
      throw nb::type_error("store: the url must be a str");
    }
    const nb::object headers = answer[1], expires = answer[2];
    if (!headers.is_none()) take_headers(headers, &out);
    double seconds = 0;
    if (!expires.is_none() && !nb::try_cast<double>(expires, seconds)) {
      throw nb::type_error("store: expires must be seconds since 1970 or None");
    }
    out.expires_unix = static_cast<std::int64_t>(seconds);
    return out;
  }

 private:
  const nb::handle store_;
};

}  // namespace

SignRequest sign_request(nb::handle store) {
  if (store.is_none()) return nullptr;
  if (PyCallable_Check(store.ptr()) == 0) throw nb::type_error("store must be callable");
  return [held = std::make_shared<HeldStore>(store)](const std::string& address) {
    return held->sign(address);
  };
}

}  // namespace lowtide::python
