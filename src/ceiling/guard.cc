#include "lowtide/command/guard.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "ceiling/guard_watch.h"
#include "ceiling/shim/page.h"
#include "core/mutex.h"
#include "lowtide/bytes.h"
#include "lowtide/command/run_command.h"
#include "lowtide/error.h"
#include "os/paths.h"
#include "os/quiet_thread.h"
#include "os/shared_memory.h"
#include "system/kernel.h"
#include "system/plain_link.h"
#include "system/process.h"
#include "system/program.h"

namespace lowtide {

namespace {

using ceiling::GuardWatch;
using ceiling::Page;
using ceiling::Slot;

constexpr int kRefused = 1;
constexpr std::uint64_t kTouchBytes = 2 << 20;  // one touch maps a whole folio of the page cache
constexpr std::uint64_t kUndone = 8;            // trims; fewer cost next to nothing
constexpr const char* kShimName = "liblowtide_guard.so";

// The layout is the same for a system-wide installation and for a wheel in a virtual environment.
std::string find_shim() {
  const std::string program = executable_path();
  const std::string folder = program.substr(0, program.rfind('/'));
  const std::string beside = folder + "/../lib/lowtide/" + kShimName;
  if (path_exists(beside)) return beside;
  throw IoError(ENOENT, "open", beside, std::nullopt,
                "the library that guard preloads is missing from this installation; install "
                "lowtide again");
}

void check(const GuardOptions& options) {
  if (options.command.empty()) {
    throw std::invalid_argument("no program was given: command is empty");
  }
  if (options.limit_bytes < kSmallestGuardBytes) {
    throw std::invalid_argument("limit " + format_bytes(options.limit_bytes) +
                                " is too small: maps below " + format_bytes(kSmallestGuardBytes) +
                                " are not watched; give at least " +
                                format_bytes(kSmallestGuardBytes));
  }
}

// In systemd's notation, where K, M and G are powers of 1024: "512M".
std::string systemd_size(std::uint64_t bytes) {
  constexpr const char* kSuffixes[] = {"", "K", "M", "G"};
  std::size_t steps = 0;
  for (; steps + 1 < std::size(kSuffixes) && bytes % 1024 == 0; ++steps) bytes /= 1024;
  return std::to_string(bytes) + kSuffixes[steps];
}

// The kernel itself can limit a program that takes no preloaded library, by its memory group.
std::string instead(const GuardOptions& options) {
  const std::string call =
      "systemd-run --user --scope -p MemoryHigh=" + systemd_size(options.limit_bytes) + " " +
      options.command[0];
  if (path_exists("/sys/fs/cgroup/cgroup.controllers")) {
    return "; a memory group (cgroup) can limit it: " + call;
  }
  return "; on a system with cgroup v2 (not this one) a memory group can limit it: " + call;
}

// The format is described in shim/settings.h. The filters let the shim tell those that guard
// already runs under, such as Docker's, from those that the program sets itself.
std::string settings_text(const GuardOptions& options, const SharedMemory& memory,
                          const Page& page) {
  std::string flags;
  if (options.drop_cache) flags += 'd';
  if (!options.children) flags += 'n';
  if (options.tree) flags += 't';
  return std::to_string(options.limit_bytes) + ":" + flags + ":" +
         std::to_string(call_filters({}, process_id())) + ":" + std::to_string(page.number) + ":" +
         memory.path();
}

// Ours comes first, so that no other preloaded library hides a call from it; an existing value is
// kept.
std::string preload_text(const std::string& shim) {
  constexpr std::string_view kUnwanted = " :$";  // LD_PRELOAD cannot express them in a name
  const std::string name =
      shim.find_first_of(kUnwanted) == std::string::npos ? shim : plain_link(shim, kUnwanted);
  const char* const before = std::getenv(ceiling::kPreloadVariable);
  return before == nullptr || *before == 0 ? name : name + ":" + before;
}

// Looks at the program from time to time, until stopped.
class Watching {
 public:
  explicit Watching(GuardWatch& watch) : watch_(watch) {}
  ~Watching() { stop(); }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;

  void start(int pid) {
    thread_ = start_thread("the thread that watches the program", [this, pid] { run(pid); });
  }
  void stop() {
    {
      const MutexLock lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run(int pid) {
    using Clock = std::chrono::steady_clock;
    constexpr Clock::duration kBetween = std::chrono::milliseconds(100);
    constexpr int kShare = 20;  // looking takes at most a twentieth of the time
    Clock::duration pause = kBetween;
    MutexLock lock(mutex_);
    for (;;) {
      const Clock::time_point until = Clock::now() + pause;
      while (!done_ && changed_.wait_until(mutex_, until)) {
      }
      if (done_) return;
      lock.unlock();
      const Clock::time_point start = Clock::now();
      try {
        watch_.look(pid);
      } catch (const std::bad_alloc&) {
        // Only the list of what was not covered may then be incomplete.
      }
      pause = std::max(kBetween, kShare * (Clock::now() - start));
      lock.lock();
    }
  }

  GuardWatch& watch_;
  Mutex mutex_;
  CondVar changed_;
  bool done_ LOWTIDE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

bool heard_from(const Page& page, int pid) {
  for (const Slot& slot : page.slots) {
    if (slot.pid.load() == pid) return true;
  }
  return false;
}

void add_sums(const Page& page, const GuardOptions& options, GuardEnd& end) {
  end.limit_bytes = options.limit_bytes;
  end.peak_bytes = page.peak_bytes.load();
  end.trims = page.trims.load();
  end.released_bytes = page.released_bytes.load();
  end.maps = page.maps.load();
  end.processes = page.processes.load();
  if (end.maps != 0 && options.limit_bytes < kTouchBytes) {
    end.not_covered.push_back("one touch can map " + format_bytes(kTouchBytes) +
                              ", which is more than the limit");
  }
  if (const auto kept = page.kept_bytes.load(); kept != 0) {
    end.not_covered.push_back(format_bytes(kept) +
                              " that the kernel did not release (locked pages, or a private "
                              "writable map whose file is not yours, is in use by another process "
                              "or has not been written to disk yet)");
  }
  if (const auto undone = page.undone.load(); undone >= kUndone && undone * 2 >= end.trims) {
    end.advice =
        "the program needs trimmed pages again at once (as with shuffled reads), which costs CPU "
        "time: use lt.memmap or lt.open in the program, or raise the limit";
  }
  if (const auto maps = page.maps_left_out.load(); maps != 0) {
    end.not_covered.push_back(std::to_string(maps) + (maps == 1 ? " map" : " maps") +
                              ", because at most 4096 per process can be watched");
  }
  if (const auto processes = page.threads_refused.load(); processes != 0) {
    end.not_covered.push_back(std::to_string(processes) +
                              (processes == 1 ? " process" : " processes") +
                              " in which the guard's thread could not start");
  }
  if (const auto processes = page.sandboxed.load(); processes != 0) {
    end.not_covered.push_back(
        processes == 1
            ? "a process from the moment it restricted its system calls (seccomp)"
            : std::to_string(processes) +
                  " processes from the moment they restricted their system calls (seccomp)");
  }
}

}  // namespace

GuardEnd guard(const GuardOptions& options) {
  check(options);
  const std::string shim = options.shim_path.empty() ? find_shim() : options.shim_path;
  if (!path_exists(shim)) throw IoError(ENOENT, "open", shim);
  // Refused before it starts: a program that silently ignores its limit would be worse.
  const std::string program = find_program(options.command[0]);
  if (const std::string why = program.empty() ? "" : preload_obstacle(program); !why.empty()) {
    GuardEnd refused;
    refused.exit_code = kRefused;
    refused.error = options.command[0] + " " + why +
                    ": no library can be preloaded into it, so guard cannot limit it" +
                    instead(options);
    return refused;
  }
  // Zeroed by the kernel, and readable after the program has ended, even if it was killed.
  const SharedMemory memory(sizeof(Page));
  Page& page = *new (memory.data()) Page;
  // The number lets a shim recognise this page: its path contains only a process id, which another
  // process may have by the time a daemon opens it.
  page.number = random_number();

  GuardWatch watch(options.limit_bytes, page);
  Watching watching(watch);
  int started = 0;
  CommandOptions command;
  command.arguments = options.command;
  command.variables = {{ceiling::kPreloadVariable, preload_text(shim)},
                       {ceiling::kSettingsVariable, settings_text(options, memory, page)}};
  const CommandEnd ended = run_command(command, [&](int pid) {
    started = pid;
    watching.start(pid);
  });
  watching.stop();  // before its results are read: its thread writes them
  GuardEnd end;
  end.exit_code = ended.exit_code;
  end.error = ended.error;
  if (!ended.error.empty()) return end;
  add_sums(page, options, end);
  // A program without a slot runs without the library: something cleared its environment, perhaps.
  if (!heard_from(page, started)) {
    end.not_covered.push_back(options.command[0] + ", which did not load the guard's library" +
                              instead(options));
  }
  for (std::string& one : watch.found()) end.not_covered.push_back(std::move(one));
  return end;
}

}  // namespace lowtide
