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

int tell_failure(const std::string& verb) {
  try {
    throw;
  } catch (const IoError& error) {
    if (!is_missing(error.err)) {
      tell(verb, error.what());
      return kFailed;
    }
    const bool pattern = error.path.find_first_of("*?[") != std::string::npos;
    tell(verb, (pattern ? "no file matches: " : "no such file: ") + error.path);
    return kWrongUsage;
  } catch (const std::invalid_argument& error) {
    tell(verb, error.what());
    return kWrongUsage;
  } catch (const std::bad_alloc&) {
    tell(verb, "out of memory");
  } catch (const std::exception& error) {
    tell(verb, error.what());
  }
  return kFailed;
}

}  // namespace lowtide::cli
