#include "system/process.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <limits>
#include <memory>
#include <system_error>

#include "core/checked.h"
#include "lowtide/bytes.h"
#include "system/limits.h"

namespace lowtide {
namespace {

std::string folder_of(const SystemRoot& root, int pid) {
  return root.proc + "/" + std::to_string(pid);
}

std::optional<int> process_number(std::string_view text) {
  int number = 0;
  const auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (err != std::errc() || end != text.data() + text.size() || number <= 0) return std::nullopt;
  return number;
}

std::vector<int> numbers_in(const std::string& folder, bool* readable) {
  std::vector<int> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  *readable = open != nullptr;
  if (!open) return numbers;
  while (const dirent* const entry = ::readdir(open.get())) {
    if (const auto number = process_number(entry->d_name)) numbers.push_back(*number);
  }
  return numbers;
}

Figure kib_of(const std::string& text, const char* key, const char* why) {
  const std::optional<std::uint64_t> kib = number_of(text, key);
  std::uint64_t bytes = 0;
  if (!kib || !checked_mul(*kib, 1024, &bytes)) return Figure::unknown(why);
  return Figure::known(bytes);
}

// "pid (comm) S ppid ...": comm may contain blanks and parentheses, so the last parenthesis ends
// it.
std::optional<ProcessStat> parse_stat(std::string_view text) {
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  const std::vector<std::string_view> fields = split(text.substr(close + 1), ' ');
  constexpr std::size_t kStart = 19;  // field 22 in proc(5); fields[0] is field 3
  if (fields.size() <= kStart) return std::nullopt;
  const auto number = [&fields](std::size_t at) { return leading_number(fields[at]); };
  const auto parent = number(1), flags = number(6), minor = number(7), major = number(9),
             threads = number(17), start = number(kStart);
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<int>::max());
  if (!parent || *parent > kMost || !minor || !major || !threads || !start) return std::nullopt;
  ProcessStat stat;
  stat.parent = static_cast<int>(*parent);
  constexpr std::uint64_t kExiting = 4;  // PF_EXITING
  stat.state = fields[0].front();
  stat.exiting = flags && (*flags & kExiting) != 0;
  stat.name = text.substr(open + 1, close - open - 1);
  stat.start_ticks = *start;
  stat.minor_faults = *minor;
  stat.major_faults = *major;
  stat.threads = *threads;
  return stat;
}

// The status of another thread, which still has the memory although the first thread has ended.
std::optional<std::string> other_thread_status(const SystemRoot& root, int pid) {
  bool readable = false;
  const std::string tasks = folder_of(root, pid) + "/task";
  for (const int thread : numbers_in(tasks, &readable)) {
    if (thread == pid) continue;
    auto text = read_text(tasks + "/" + std::to_string(thread) + "/status");
    if (text && number_of(*text, "VmRSS")) return text;
  }
  return std::nullopt;
}

}  // namespace

std::string proc_reason(const SystemRoot& root, int pid, const std::string& file, int err) {
  switch (err) {
    case EACCES:
    case EPERM:
      return "no permission: the process belongs to another user";
    case ENOENT:
    case ESRCH:
      if (read_text(folder_of(root, pid) + "/stat")) {
        return err == ENOENT ? "this kernel has no /proc/PID/" + file : "the process has no memory";
      }
      // A process that accepts signal 0, or refuses it for lack of permission, exists.
      if (::kill(pid, 0) == 0 || errno == EPERM) return "/proc hides the process (hidepid)";
      return "the process has ended";
    default:
      return "/proc/PID/" + file + ": " + std::generic_category().message(err);
  }
}

Known<ProcessStat> read_stat(const SystemRoot& root, int pid, bool* gone) {
  int err = 0;
  const std::optional<std::string> text = read_text(folder_of(root, pid) + "/stat", &err);
  if (gone != nullptr) *gone = !text && (err == ENOENT || err == ESRCH);
  if (!text) return Known<ProcessStat>::unknown(proc_reason(root, pid, "stat", err));
  std::optional<ProcessStat> stat = parse_stat(*text);
  if (!stat) return Known<ProcessStat>::unknown("/proc/PID/stat is not as expected");
  stat->pid = pid;
  return Known<ProcessStat>::known(std::move(*stat));
}

ProcessMemory read_memory(const SystemRoot& root, int pid) {
  int err = 0;
  std::optional<std::string> text = read_text(folder_of(root, pid) + "/status", &err);
  if (text && !number_of(*text, "VmRSS")) {
    if (auto other = other_thread_status(root, pid)) text = std::move(other);
  }
  if (!text) {
    const Figure none = Figure::unknown(proc_reason(root, pid, "status", err));
    return {none, none, none, none, none, none};
  }
  const Figure rss = kib_of(*text, "VmRSS", "the process has released its memory");
  const char* const why = rss ? "this kernel does not report it" : rss.why.c_str();
  return {rss,
          kib_of(*text, "RssAnon", why),
          kib_of(*text, "RssFile", why),
          kib_of(*text, "RssShmem", why),
          kib_of(*text, "VmPTE", why),
          kib_of(*text, "VmSwap", why)};
}

ProcessIo read_io(const SystemRoot& root, int pid) {
  int err = 0;
  const std::optional<std::string> text = read_text(folder_of(root, pid) + "/io", &err);
  if (!text) {
    const Figure none = Figure::unknown(proc_reason(root, pid, "io", err));
    return {none, none};
  }
  const auto bytes = [&text](const char* key) {
    const std::optional<std::uint64_t> count = number_of(*text, key);
    return count ? Figure::known(*count) : Figure::unknown("this kernel does not report it");
  };
  return {bytes("read_bytes"), bytes("rchar")};
}

Figure read_pss(const SystemRoot& root, int pid) {
  int err = 0;
  const std::optional<std::string> text = read_text(folder_of(root, pid) + "/smaps_rollup", &err);
  if (!text) return Figure::unknown(proc_reason(root, pid, "smaps_rollup", err));
  return kib_of(*text, "Pss", "the process has released its memory");
}

std::vector<std::string> read_command_line(const SystemRoot& root, int pid) {
  const std::optional<std::string> text = read_text(folder_of(root, pid) + "/cmdline");
  std::vector<std::string> words;
  for (std::size_t at = 0; text && at < text->size();) {
    words.emplace_back(text->c_str() + at);
    at += words.back().size() + 1;
  }
  return words;
}

std::vector<int> list_processes(const SystemRoot& root) {
  bool readable = false;
  return numbers_in(root.proc, &readable);
}

Known<std::vector<int>> read_children(const SystemRoot& root, int pid) {
  using Children = Known<std::vector<int>>;
  bool readable = false;
  const std::string tasks = folder_of(root, pid) + "/task";
  std::vector<int> children;
  bool one = false;
  int err = ENOENT;
  for (const int thread : numbers_in(tasks, &readable)) {
    const auto text = read_text(tasks + "/" + std::to_string(thread) + "/children", &err);
    if (!text) continue;  // this thread, or the process, has just ended
    one = true;
    for (const std::string_view word : split(*text, ' ')) {
      if (const auto child = process_number(word)) children.push_back(*child);
    }
  }
  if (one) return Children::known(std::move(children));
  return Children::unknown(proc_reason(root, pid, "task/TID/children", err));
}

int process_id() {
  return ::getpid();
}

bool adopts_orphans() {
  int on = 0;
  return ::prctl(PR_GET_CHILD_SUBREAPER, &on, 0, 0, 0) == 0 && on != 0;
}

std::string machine_text(const SystemRoot& root) {
  struct utsname names {};
  std::string text = "Linux";
  if (::uname(&names) == 0) {
    const std::vector<std::string_view> release = split(names.release, '.');
    text = names.sysname;
    if (release.size() >= 2) text += " " + std::string(release[0]) + "." + std::string(release[1]);
  }
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) cores = CPU_COUNT(&allowed);
  text += ", " + std::to_string(cores) + (cores == 1 ? " core" : " cores");
  if (const auto bytes = physical_bytes(root)) text += ", " + format_bytes(*bytes);
  return text;
}

std::uint64_t thread_cpu_ns() {
  timespec spent{};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent) != 0) return 0;
  return static_cast<std::uint64_t>(spent.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(spent.tv_nsec);
}

std::int64_t unix_time_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace lowtide
