#include "store.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "gil.h"

namespace lowtide::python {
namespace {

[[noreturn]] void refuse(const std::string& expected, const std::string& found) {
  throw nb::type_error((expected + ", not " + found).c_str());
}
[[noreturn]] void refuse(const std::string& expected, nb::handle found) {
  refuse(expected, nb::inst_name(found).c_str());
}

void take_headers(const nb::object& headers, SignedRequest* out) {
  if (!nb::isinstance<nb::dict>(headers)) refuse("store: headers must be a dict or None", headers);
  for (const auto [name, value] : nb::borrow<nb::dict>(headers)) {
    std::pair<std::string, std::string> entry;
    if (!nb::try_cast<std::string>(name, entry.first)) {
      refuse("store: the name of a header must be a str", name);
    }
    if (!nb::try_cast<std::string>(value, entry.second)) {
      refuse("store: the header " + entry.first + " must be a str", value);
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

  [[nodiscard]] std::vector<std::string> list(const std::string& beginning, bool deep) const {
    const Locked locked;
    const nb::object answer = store_(nb::str(beginning.data(), beginning.size()), deep);
    std::vector<std::string> found;
    for (const nb::handle one : answer) {
      if (!nb::try_cast(one, found.emplace_back())) {
        refuse("store: every address that list returns must be a str", one);
      }
    }
    return found;
  }

  [[nodiscard]] SignedRequest sign(const std::string& address) const {
    const Locked locked;
    const nb::object answer = store_(nb::str(address.data(), address.size()));
    const std::string expected = "store must return a tuple of url, headers and expires";
    if (!nb::isinstance<nb::tuple>(answer)) refuse(expected, answer);
    if (const std::size_t items = nb::len(answer); items != 3) {
      refuse(expected, "of " + std::to_string(items) + " items");
    }
    SignedRequest out;
    const nb::object url = answer[0], headers = answer[1], expires = answer[2];
    if (!nb::try_cast<std::string>(url, out.url)) refuse("store: the url must be a str", url);
    if (!headers.is_none()) take_headers(headers, &out);
    double seconds = 0;
    if (!expires.is_none() && !nb::try_cast<double>(expires, seconds)) {
      refuse("store: expires must be seconds since 1970 or None", expires);
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
  if (PyCallable_Check(store.ptr()) == 0) refuse("store must be callable", store);
  return [held = std::make_shared<HeldStore>(store)](const std::string& address) {
    return held->sign(address);
  };
}

ListObjects list_objects(nb::handle lister) {
  if (lister.is_none()) return nullptr;
  return [held = std::make_shared<HeldStore>(lister)](const std::string& beginning, bool deep) {
    return held->list(beginning, deep);
  };
}

}  // namespace lowtide::python
