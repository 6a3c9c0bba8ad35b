// store.h - a Python callable that signs requests for objects.
#pragma once

#include <nanobind/nanobind.h>

#include "lowtide/address.h"

namespace lowtide::python {

// `store` is None or a callable: address -> (url, headers, expires). The result calls it with the
// GIL, from any thread; nullptr for None. Needs the GIL.
[[nodiscard]] SignRequest sign_request(nanobind::handle store);

}  // namespace lowtide::python
