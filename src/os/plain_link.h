// plain_link.h - a second name for a file, for readers that cannot take every character of a name.
//
// LD_PRELOAD splits its value at spaces and colons and expands "$". Programs hand the name on for
// as long as they like, so it must mean the same file long after its maker has ended: once a name
// is free a stranger could take it, and his file would run as code. Hence a link that stays, in a
// folder whose parents nobody else can write to; never below /tmp.
#pragma once

#include <string>
#include <string_view>

namespace lowtide {

// A path without the `unwanted` characters that leads to `target`: a link in the folder "lowtide"
// below the first of $XDG_RUNTIME_DIR, $XDG_CACHE_HOME and $HOME/.cache that is safe. Made once,
// found again by later calls. Throws std::runtime_error, with what to do, where none is safe, and
// IoError where the link cannot be made.
[[nodiscard]] std::string plain_link(const std::string& target, std::string_view unwanted);

}  // namespace lowtide
