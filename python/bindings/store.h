// store.h - Python callables that sign requests for objects, and list them.
#pragma once

#include <nanobind/nanobind.h>

#include "lowtide/address.h"

namespace lowtide::python {

// `store` is None or a callable: address -> (url, headers, expires). The result calls it with the
// GIL, from any thread; nullptr for None. Needs the GIL.
[[nodiscard]] SignRequest sign_request(nanobind::handle store);

// The same for a callable that lists: (beginning, deep) -> list of addresses.
[[nodiscard]] ListObjects list_objects(nanobind::handle lister);

}  // namespace lowtide::python
