#include "lowtide/command/run_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "system/process.h"

extern char** environ;

namespace lowtide {
namespace {

constexpr std::array kPassedOn = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

std::atomic<pid_t> signalled{0};  // the process to forward signals to; 0: none

// A terminal sends Ctrl-C, Ctrl-\ and its hangup to the whole group, including the program. So only
// signals that were sent to us alone are forwarded.
void pass_on(int number, siginfo_t* info, void*) {
  const int err = errno;
  const pid_t child = signalled.load();
  if (child > 0 && info->si_code <= 0 && info->si_pid != child) ::kill(child, number);
  errno = err;
}

// Installs our handlers during its lifetime. Signals that were ignored (nohup, a shell's background
// job) stay ignored, for us and for the program.
class PassingOn {
 public:
  PassingOn() {
    sigset_t ours;
    ::sigemptyset(&ours);
    for (const int number : kPassedOn) ::sigaddset(&ours, number);
    ::pthread_sigmask(SIG_BLOCK, &ours, &mask_before_);
    struct sigaction action {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (std::size_t i = 0; i < kPassedOn.size(); ++i) {
      ::sigaction(kPassedOn[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(kPassedOn[i], &action, nullptr);
    }
    // If SIGCHLD were ignored, the kernel would reap the program and its exit code would be lost.
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &usual, &child_before_);
  }
  ~PassingOn() {
    signalled = 0;
    restore();
  }
  PassingOn(const PassingOn&) = delete;
  PassingOn& operator=(const PassingOn&) = delete;

  // Signals that arrived in the meantime are delivered now.
  void begin(pid_t child) const {
    signalled = child;
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  // Also called in the child, before it becomes the program.
  void restore() const {
    for (std::size_t i = 0; i < kPassedOn.size(); ++i) {
      ::sigaction(kPassedOn[i], &before_[i], nullptr);
    }
    ::sigaction(SIGCHLD, &child_before_, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }

 private:
  struct sigaction child_before_ {};
  std::array<struct sigaction, kPassedOn.size()> before_{};
  sigset_t mask_before_{};
};

// Makes orphans of the program our children, so that they are seen and reaped.
class Adopting {
 public:
  Adopting() : before_(adopts_orphans()) { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }
  ~Adopting() {
    if (!before_) ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
  }
  Adopting(const Adopting&) = delete;
  Adopting& operator=(const Adopting&) = delete;

 private:
  bool before_;
};

struct Pipe {
  int from = -1, to = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    from = ends[0];
    to = ends[1];
  }
  ~Pipe() {
    close_end(&from);
    close_end(&to);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close_end(int* end) {
    if (*end >= 0) ::close(*end);
    *end = -1;
  }
};

// 0 at the end of the pipe.
ssize_t read_all(int fd, void* into, std::size_t size) {
  ssize_t got = 0;
  do {
    got = ::read(fd, into, size);
  } while (got < 0 && errno == EINTR);
  return got;
}

// Prepared before the fork: after it, only async-signal-safe calls are allowed.
struct Program {
  std::vector<std::string> texts;
  std::vector<char*> arguments, environment;

  explicit Program(const CommandOptions& options) {
    for (const std::string& argument : options.arguments) texts.push_back(argument);
    for (const auto& [name, value] : options.variables) texts.push_back(name + "=" + value);
    const std::size_t count = options.arguments.size();
    for (std::size_t i = 0; i < count; ++i) arguments.push_back(texts[i].data());
    arguments.push_back(nullptr);
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      if (!is_replaced(options, *entry)) environment.push_back(*entry);
    }
    for (std::size_t i = count; i < texts.size(); ++i) environment.push_back(texts[i].data());
    environment.push_back(nullptr);
  }

  static bool is_replaced(const CommandOptions& options, std::string_view entry) {
    for (const auto& [name, value] : options.variables) {
      if (entry.starts_with(name + "=")) return true;
    }
    return false;
  }
};

// Everything the child does until it becomes the program.
[[noreturn]] void become(const Program& program, const PassingOn& signals, pid_t parent, Pipe& go,
                         Pipe& trouble) {
  constexpr int kNobodyLooks = 127;
  Pipe::close_end(&go.to);
  Pipe::close_end(&trouble.from);
  signals.restore();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  char start = 0;
  if (::getppid() != parent || read_all(go.from, &start, 1) != 1) ::_exit(kNobodyLooks);
  ::execvpe(program.arguments[0], program.arguments.data(), program.environment.data());
  const int err = errno;
  const ssize_t told = ::write(trouble.to, &err, sizeof err);
  ::_exit(told == sizeof err ? kNobodyLooks : 126);
}

// Waits for the program, and reaps the orphans that ended before it.
int wait_for(pid_t child) {
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended < 0 && errno != EINTR) return 126;  // reaped elsewhere: its exit code is unknown
    if (ended != child) continue;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
}

CommandEnd not_run(int err, const std::string& what) {
  const int code = err == ENOENT ? 127 : 126;
  return {code, what + ": " + std::generic_category().message(err)};
}

// Kills and reaps a child that never became the program.
void give_up(pid_t child) {
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

CommandEnd run_command(const CommandOptions& options, const std::function<void(int pid)>& started) {
  if (options.arguments.empty()) throw std::invalid_argument("run_command: no program was given");
  const Program program(options);
  Pipe go, trouble;
  if (go.from < 0 || trouble.from < 0) return not_run(errno, "pipe");
  const pid_t parent = ::getpid();
  const Adopting adopting;
  const PassingOn signals;
  const pid_t child = ::fork();
  if (child < 0) return not_run(errno, "fork");
  if (child == 0) become(program, signals, parent, go, trouble);
  signals.begin(child);
  Pipe::close_end(&trouble.to);  // go.from stays: a write without a reader would end us (SIGPIPE)
  try {
    if (started) started(child);
  } catch (...) {
    give_up(child);
    throw;
  }
  const ssize_t released = ::write(go.to, "g", 1);
  int err = 0;
  const bool failed =
      released == 1 && read_all(trouble.from, &err, sizeof err) == ssize_t{sizeof err};
  const int code = wait_for(child);
  if (failed) return not_run(err, options.arguments[0]);
  return {code, ""};
}

}  // namespace lowtide
