// failure.h - how the command reports errors.
#pragma once

#include <string>

#include "lowtide/command/json.h"

namespace lowtide::cli {

// Why a verb failed, for people (the message) and for programs (the code).
struct Failure {
  int code = 0;         // the exit code: kWrongUsage for a bad argument and a missing file, else
                        // kFailed
  std::string message;  // one sentence; names the file
};

// Describes the exception being handled. Call it only inside a catch block.
[[nodiscard]] Failure failure_now();

// Prints "lowtide VERB: ..." on stderr for the exception being handled and returns its exit code.
// Call it only inside a catch block.
[[nodiscard]] int tell_failure(const std::string& verb);

// Prints "lowtide VERB: MESSAGE" on stderr.
void tell(const std::string& verb, const std::string& message);

// The object that --json prints for a file that could not be examined: path and error.
void write_failure(JsonWriter* json, const std::string& path, const std::string& error);

}  // namespace lowtide::cli
