#include "os/quiet_thread.h"

#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "lowtide/error.h"

namespace lowtide {
namespace {

class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

std::thread start_thread(const std::string& what, std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    const int err = error.code().value();
    throw IoError(err, "cannot start " + what, "", std::nullopt,
                  err == EAGAIN ? kNoThreadHint : "");
  }
}

std::thread start_quiet_thread(const std::string& what, std::function<void()> body) {
  const SignalsBlocked blocked;  // a thread inherits its creator's mask
  return start_thread(what, std::move(body));
}

}  // namespace lowtide
