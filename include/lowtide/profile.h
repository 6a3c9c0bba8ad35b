// profile.h - where the memory of a process tree went: heap, mapped files, shared pages, page
// tables, page cache; over time, with a verdict in words.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

enum class VerdictKind {
  flat,          // nothing grew that matters
  heap_leak,     // private memory grows steadily and does not level off
  mapped_files,  // pages of mapped files: the kernel takes them back when it needs them
  page_cache,    // only the page cache grew: no process holds it
  page_tables,   // the tables that map memory: cannot be taken back
  shared_twice,  // the sum over processes counts shared pages more than once
  too_short,     // not enough readings to say
};
[[nodiscard]] const char* verdict_word(VerdictKind kind) noexcept;  // "flat", "heap-leak", ...

struct Verdict {
  VerdictKind kind = VerdictKind::too_short;
  std::string headline;               // one sentence
  std::vector<std::string> evidence;  // numbers it rests on: "heap: +12.3 +- 0.4 MiB/s over 60 s"
  std::vector<std::string> unknown;   // what could not be seen, and why
  std::vector<std::string> advice;    // what to do next; may be empty
};

// Bytes, summed over the tree at one moment; empty is unknown.
struct Level {
  std::optional<std::uint64_t> rss, anon, file, shmem, page_tables, page_cache, group_usage;
};
using Peak = Level;  // each figure at its own highest moment
// The end minus the start; empty where fewer than two readings tell.
struct Growth {
  std::optional<std::int64_t> rss, anon, file, shmem, page_tables, page_cache;
};

// The page cache of one file over the run, whether or not a process maps it.
struct FileCache {
  std::optional<std::uint64_t> size, start, peak, end;
};

// One reading as it comes. What is asked rarely (page_cache, group_usage, group_page_cache) is as
// last seen.
struct Moment {
  double seconds = 0;
  std::size_t processes = 0;
  Level level;
  std::optional<std::uint64_t> group_page_cache;  // charged to the memory group
};

struct ProfileOptions {
  int pid = 0;                       // the root of the tree; 0: this process
  double interval_s = 0;             // 0: adaptive, under 1 % of a core
  bool children = true;              // follow the tree
  std::string trace_path;            // also written there while it runs; empty: kept in memory only
  std::vector<std::string> command;  // told in the report; empty: what `pid` was started as
  std::vector<std::string> watch_files;  // told of their page cache though nobody maps them
  // Called with each reading by the thread that watches; the first time in the constructor.
  std::function<void(const Moment& now)> on_reading = {};
};

// How a picture is drawn. Pictures of several recordings compare where their axes reach equally
// far.
struct PictureOptions {
  std::uint64_t memory_bytes = 0;  // the axis of memory reaches at least to here
  double seconds = 0;              // and that of time
  // 440 x 260 units, to stand beside others: the stack of memory alone, without headline, legend
  // and bytes read. Of the mapped files libraries are one layer and all others another, whose page
  // cache it is that is drawn.
  bool small = false;
};

// A finished recording. Cheap to copy.
class Recording {
 public:
  // Reads a trace of ours, a JSON report of ours or memory_profiler's .dat, told apart by their
  // first bytes. IoError, FormatError.
  [[nodiscard]] static Recording load(const std::string& path);

  // After the start-up, which is the first tenth of the run.
  [[nodiscard]] Level start() const;
  [[nodiscard]] Peak peak() const;
  // Before the processes ended: the last reading in which those that had lasted were all whole.
  [[nodiscard]] Level end() const;
  [[nodiscard]] Growth growth() const;
  [[nodiscard]] FileCache page_cache_of(const std::string& path) const;
  [[nodiscard]] Verdict verdict() const;
  [[nodiscard]] std::vector<std::string> command() const;
  [[nodiscard]] std::optional<int> exit_code() const;  // empty: unknown, or not a command of ours
  [[nodiscard]] double seconds() const;
  [[nodiscard]] std::size_t readings() const;
  [[nodiscard]] double cost() const;  // CPU seconds of sampling by second of run
  [[nodiscard]] bool cut() const;     // a trace whose profiler was killed
  [[nodiscard]] std::string html() const;
  // Throws std::invalid_argument for seconds below 0.
  [[nodiscard]] std::string svg(const PictureOptions& options = {}) const;
  [[nodiscard]] std::string json() const;
  // By suffix: .html, .svg, .json, .dat, .trace; another one: std::invalid_argument. The file is
  // there whole or not at all. `picture` is for .svg.
  void save(const std::string& path, const PictureOptions& picture = {}) const;

  struct Impl;
  explicit Recording(std::shared_ptr<const Impl> impl);

 private:
  std::shared_ptr<const Impl> impl_;
};

// Watches from a thread of its own until stopped; the first reading is taken before the constructor
// returns. Any thread may call. In a child that the process forks it does nothing, and its
// recording is empty.
class Profile {
 public:
  // Throws IoError where no such process is seen or the trace cannot be written.
  explicit Profile(const ProfileOptions& options);
  ~Profile();
  Profile(Profile&&) noexcept;
  Profile& operator=(Profile&&) noexcept;

  // A line on the curve, now. Thousands of them are thinned.
  void mark(const std::string& text);
  // Ends the watching; the first call decides, later ones change nothing. Throws IoError where the
  // trace could not be written to its end (no space): the recording is whole all the same.
  void stop(std::optional<int> exit_code = std::nullopt);
  // Whether all processes that were watched have ended.
  [[nodiscard]] bool ended() const;
  [[nodiscard]] Recording recording() const;  // what was seen so far

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Marks the profile that watches this process, if one runs; else does nothing, at the cost of one
// atomic load.
void mark_profile(const std::string& text);
// The same for a training loop, which calls it at every step: marks each epoch, and a step now and
// then, ever more rarely, so that about a hundred are on the curve of an hour.
void mark_step(std::uint64_t epoch, std::uint64_t step);
[[nodiscard]] bool profile_running() noexcept;

}  // namespace lowtide
