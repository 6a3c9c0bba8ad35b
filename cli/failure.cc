#include "failure.h"

#include <cerrno>
#include <exception>
#include <new>
#include <stdexcept>

#include "lowtide/error.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

bool is_missing(int err) {
  return err == ENOENT || err == ENOTDIR || err == ENAMETOOLONG;
}

}  // namespace

void tell(const std::string& verb, const std::string& message) {
  const Terminal& on = error_output();
  const std::string who = verb.empty() ? "lowtide" : "lowtide " + verb;
  print_error(paint(who + ":", Tone::bad, on) + " " + shown(message, on) + "\n");
}

Failure failure_now() {
  try {
    throw;
  } catch (const IoError& error) {
    if (!is_missing(error.err)) return {kFailed, error.what()};
    const bool has_hint = error.reason.find("; ") != std::string::npos;
    if (has_hint) return {kWrongUsage, error.what()};
    const bool pattern = error.path.find_first_of("*?[") != std::string::npos;
    return {kWrongUsage, (pattern ? "no file matches: " : "no such file: ") + error.path};
  } catch (const std::invalid_argument& error) {
    return {kWrongUsage, error.what()};
  } catch (const NoMemory& error) {
    return {kFailed, error.what()};
  } catch (const std::bad_alloc&) {
    return {kFailed, "out of memory"};
  } catch (const std::length_error&) {  // a vector longer than an address space
    return {kFailed, "out of memory"};
  } catch (const std::exception& error) {
    return {kFailed, error.what()};
  }
}

int tell_failure(const std::string& verb) {
  const Failure failure = failure_now();
  tell(verb, failure.message);
  return failure.code;
}

void write_failure(JsonWriter* json, const std::string& path, const std::string& error) {
  json->begin_object().field("path", path).field("error", error).end_object();
}

}  // namespace lowtide::cli
