// plain_link.h - a second name for a file, for readers that do not accept every character.
//
// LD_PRELOAD splits its value at spaces and colons and expands "$". Programs pass the name on for
// as long as they like, so it must refer to the same file long after its maker has ended: if the
// name became free, another user could take it, and that file would run as code. Hence a permanent
// link, in a folder whose parents no other user can write to; never below /tmp.
#pragma once

#include <string>
#include <string_view>

namespace lowtide {

// A path to `target` without the `unwanted` characters: a link in the folder "lowtide" below the
// first of $XDG_RUNTIME_DIR, $XDG_CACHE_HOME and $HOME/.cache that is safe. Created once and found
// again by later calls. Throws std::runtime_error, with advice, if none is safe, and IoError if the
// link cannot be created.
[[nodiscard]] std::string plain_link(const std::string& target, std::string_view unwanted);

}  // namespace lowtide
