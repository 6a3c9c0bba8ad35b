// version.h - which Lowtide this is.
#pragma once

namespace lowtide {

// Of the library that is linked: "0.1.0".
[[nodiscard]] const char* version() noexcept;

}  // namespace lowtide
