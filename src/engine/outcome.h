// outcome.h - turns an Outcome, which is data, into the exception that a user sees.
#pragma once

#include <string>

#include "core/extent.h"
#include "engine/engine.h"

namespace lowtide {

// Throws FormatError for a file that ended early and IoError for anything else, naming path,
// offset, expected and found; `when` ("epoch 0, step 17") may be empty. Requires !outcome.ok() and
// not cancelled.
[[noreturn]] void throw_outcome(const Outcome& outcome, const Read& read, const std::string& path,
                                const std::string& when);

}  // namespace lowtide
