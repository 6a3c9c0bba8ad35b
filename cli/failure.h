// failure.h - errors as the command tells them.
#pragma once

#include <string>

#include "lowtide/json.h"

namespace lowtide::cli {

// What a verb could not do, as people and programs are told.
struct Failure {
  int code = 0;         // the exit code: kWrongUsage for a bad argument and a missing file, else
                        // kFailed
  std::string message;  // one sentence; names the file
};

// Of the exception that is being handled: only inside a catch block.
[[nodiscard]] Failure failure_now();

// Prints "lowtide VERB: ..." on stderr for the exception that is being handled and returns the exit
// code for it. Only inside a catch block.
[[nodiscard]] int tell_failure(const std::string& verb);

// The same for words of our own.
void tell(const std::string& verb, const std::string& message);

// The object that --json prints for a file that could not be looked at: path and error.
void write_failure(JsonWriter* json, const std::string& path, const std::string& error);

}  // namespace lowtide::cli
