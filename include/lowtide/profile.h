// profile.h - where the memory of a process tree goes over time (heap, mapped files, shared pages,
// page tables, page cache), with a verdict in words.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

// What the memory of a run did.
enum class VerdictKind {
  flat,          // nothing grew noticeably
  heap_leak,     // private memory grows steadily and does not level off
  mapped_files,  // pages of mapped files grew; the kernel reclaims them when it needs them
  page_cache,    // only the page cache grew; no process holds it
  page_tables,   // the tables that map memory grew; they cannot be reclaimed
  shared_twice,  // the sum over processes counts shared pages more than once
  too_short,     // too few readings for a verdict
};
// "flat", "heap-leak", ...
[[nodiscard]] const char* verdict_word(VerdictKind kind) noexcept;

// A verdict, and what it is based on.
struct Verdict {
  VerdictKind kind = VerdictKind::too_short;
  std::string headline;               // one sentence
  std::vector<std::string> evidence;  // the numbers behind it
  std::vector<std::string> unknown;   // what could not be measured, and why
  std::vector<std::string> advice;    // what to do next; may be empty
};

// Bytes, summed over the tree at one moment; empty means unknown.
struct Level {
  std::optional<std::uint64_t> rss, anon, file, shmem, page_tables, page_cache, group_usage;
};
// Each figure at its own highest moment.
using Peak = Level;
// The end minus the start, in bytes; empty if fewer than two readings have the figure.
struct Growth {
  std::optional<std::int64_t> rss, anon, file, shmem, page_tables, page_cache;
};

// The page cache of one file over the run, in bytes, whether or not a process maps it.
struct FileCache {
  std::optional<std::uint64_t> size, start, peak, end;
};

// One reading. page_cache, group_usage and group_page_cache are read less often and hold their last
// known value.
struct Moment {
  double seconds = 0;
  std::size_t processes = 0;
  Level level;
  std::optional<std::uint64_t> group_page_cache;  // charged to the memory group
};

// What to watch.
struct ProfileOptions {
  int pid = 0;                           // the root of the tree; 0: this process
  double interval_s = 0;                 // seconds; 0: adaptive, under 1 % of a core
  bool children = true;                  // follow child processes
  std::string trace_path;                // written while it runs; empty: kept in memory only
  std::vector<std::string> command;      // for the report; empty: the command line of `pid`
  std::vector<std::string> watch_files;  // report their page cache even if no process maps them
  // Called with each reading on the watching thread; the first time in the constructor.
  std::function<void(const Moment& now)> on_reading = {};
};

// How a picture is drawn. To compare the pictures of several recordings, give them equal axes.
struct PictureOptions {
  std::uint64_t memory_bytes = 0;  // the memory axis reaches at least this far
  double seconds = 0;              // the time axis reaches at least this far
  // Draws 440 x 260 units, to place pictures side by side: only the stack of memory, without
  // headline, legend and bytes read. Among mapped files, libraries are one layer and all other
  // files another; the page cache shown is that of the latter.
  bool small = false;
};

// A finished recording. Immutable and cheap to copy; any thread.
class Recording {
 public:
  // Reads a Lowtide trace, a Lowtide JSON report or memory_profiler's .dat, recognised by their
  // first bytes. Throws IoError, FormatError.
  [[nodiscard]] static Recording load(const std::string& path);

  // After start-up, which is the first tenth of the run.
  [[nodiscard]] Level start() const;
  [[nodiscard]] Peak peak() const;
  // Before the processes ended: the last reading that is complete for all long-lived processes.
  [[nodiscard]] Level end() const;
  [[nodiscard]] Growth growth() const;
  [[nodiscard]] FileCache page_cache_of(const std::string& path) const;
  [[nodiscard]] Verdict verdict() const;
  [[nodiscard]] std::vector<std::string> command() const;
  // Empty: unknown, or the program was not started by the profiler.
  [[nodiscard]] std::optional<int> exit_code() const;
  // How long the run took.
  [[nodiscard]] double seconds() const;
  // How many readings there are.
  [[nodiscard]] std::size_t readings() const;
  // CPU seconds of sampling per second of the run.
  [[nodiscard]] double cost() const;
  // Whether the last line of the trace is incomplete and was left out: the profiler was killed or
  // is still running, or the disk was full.
  [[nodiscard]] bool cut() const;
  // The report as one HTML file that needs no network.
  [[nodiscard]] std::string html() const;
  // Throws std::invalid_argument for seconds below 0.
  [[nodiscard]] std::string svg(const PictureOptions& options = {}) const;
  [[nodiscard]] std::string json() const;
  // Writes a file in the format of its suffix: .html, .svg, .json, .dat or .trace. The file appears
  // whole or not at all. `picture` is for .svg. Throws IoError, and std::invalid_argument for
  // any other suffix.
  void save(const std::string& path, const PictureOptions& picture = {}) const;

  struct Impl;
  explicit Recording(std::shared_ptr<const Impl> impl);
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

// Watches a process tree on a thread of its own until it is stopped. The first reading is taken
// before the constructor returns. Any thread may call any member. In the child of a fork it does
// nothing, and its recording is empty.
class Profile {
 public:
  // Throws IoError if the process does not exist or the trace cannot be written.
  explicit Profile(const ProfileOptions& options);
  ~Profile();
  Profile(Profile&&) noexcept;
  Profile& operator=(Profile&&) noexcept;

  // Draws a line on the curve at the current time. If there are thousands, some are left out.
  void mark(const std::string& text);
  // Stops watching; only the first call has an effect. Throws IoError if the trace could not be
  // written completely (no space left); the recording is complete nevertheless.
  void stop(std::optional<int> exit_code = std::nullopt);
  // Whether all watched processes have ended.
  [[nodiscard]] bool ended() const;
  // The readings so far.
  [[nodiscard]] Recording recording() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Marks the profile that watches this process. Without one it costs one atomic load. Any thread.
void mark_profile(const std::string& text);
// The same for a training loop that calls it at every step. It marks each epoch, and steps ever
// less often, so that the curve of one hour has about a hundred marks.
void mark_step(std::uint64_t epoch, std::uint64_t step);
// Whether a profile watches this process.
[[nodiscard]] bool profile_running() noexcept;

}  // namespace lowtide
