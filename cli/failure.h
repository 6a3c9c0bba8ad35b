// failure.h - errors as the command tells them.
#pragma once

#include <string>

namespace lowtide::cli {

// Prints "lowtide VERB: ..." on stderr for the exception that is being handled and returns the exit
// code for it: kWrongUsage for a bad argument and for a file that is not there, else kFailed. Only
// inside a catch block.
[[nodiscard]] int tell_failure(const std::string& verb);

// The same for words of our own.
void tell(const std::string& verb, const std::string& message);

}  // namespace lowtide::cli
