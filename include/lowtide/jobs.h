// jobs.h - rewrites data that is bigger than memory: shuffle, convert, merge and check, as plans
// made of tasks.
//
//   auto plan = lowtide::plan_shuffle({.paths = {"m.npy"}}, "shuffled.npy", {.seed = 1});
//   plan.run();  // here; or each task on any machine that sees the same files
//
// A plan is stages of tasks. The tasks of a stage are independent of each other, and a stage can
// begin when the one before it is done. A task can be run again after any failure; one that is done
// is recognised and skipped. The result appears under its name whole, or not at all: until then an
// old file or folder stays as it was.
//
// What a job needs in between is in a hidden folder beside the destination,
// ".NAME.lowtide-job-HASH". HASH is made from the plan, so the same call after a crash finds what
// was finished and goes on. The result is the same bytes, however many tasks ran at once and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/array.h"
#include "lowtide/error.h"
#include "lowtide/tokens.h"

namespace lowtide {

// What a job reads, and how to open it.
struct JobSource {
  // One path may be a pattern, and for tokens a folder or the prefix of a Megatron pair; several
  // are one array or one stream, in this order. They must mean the same on every machine that runs
  // a task; relative ones are made absolute.
  std::vector<std::string> paths;
  bool tokens = false;  // opened as Tokens; otherwise as an Array
  // How to open it. The members `read` are ignored: a job has a memory of its own and leaves
  // nothing in the page cache.
  OpenOptions array = {};
  TokensOptions token_options = {};
  // Ragged rows: `paths` are the values, these the offsets: an Array of integers, row i being
  // values[offsets[i]:offsets[i + 1]].
  std::vector<std::string> offsets = {};
  OpenOptions offsets_array = {};
};

// What is shuffled as a whole: a row of an array (or a ragged row); a document of tokens, if the
// format records them or `eot` is given; a window, block_size + 1 tokens from token k * block_size
// on.
enum class Unit { row, document, window };
// The enumerator's name, and back; std::invalid_argument lists the words.
[[nodiscard]] std::string_view unit_word(Unit unit);
[[nodiscard]] Unit parse_unit(std::string_view word);

struct ShuffleOptions {
  Unit unit = Unit::row;
  std::uint64_t block_size = 0;  // of windows; each becomes a row of block_size + 1 tokens
  std::uint64_t seed = 0;
  // 1: the destination is a file (of Megatron's format, two). More: a folder of files named
  // "part-00000-of-00064.npy" (or as the format wants it), which one after the other hold the one
  // order. Ragged rows always make a folder: "values.npy" and "offsets.npy", or folders "values"
  // and "offsets" of such parts; the offsets of all parts in turn are the offsets of all values.
  std::uint64_t shards = 1;
  // The most that Plan::run holds, and that each task holds which is run elsewhere. 0:
  // default_memory_bytes(), as it is where the plan is made.
  std::uint64_t memory_bytes = 0;
  // Replaces what is at the destination: a file by a file; a folder by a folder, if it contains
  // nothing but what a job makes.
  bool overwrite = false;
};

struct ConvertOptions {
  // A word of token_writer_formats(), or "npy" or "raw".
  std::string format;
  // Of the result. nullopt: as in the source. Integers only, unless it is the source's own.
  std::optional<std::string> dtype = std::nullopt;
  std::uint64_t memory_bytes = 0;  // as in ShuffleOptions
  bool overwrite = false;          // likewise
};

struct MergeOptions {
  std::uint64_t memory_bytes = 0;  // as in ShuffleOptions
  bool overwrite = false;          // likewise
};

struct JobProgress {
  // Data that went through a stage; a shuffle has two, so its total is twice the data.
  std::uint64_t done_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::size_t stage = 0;  // the current one
  std::size_t stages = 0;
  std::size_t tasks_done = 0;  // of the current stage
  std::size_t tasks = 0;
};

// Copies share one immutable plan. Any thread. Nothing is open between two calls, so a plan can
// cross a fork.
class Plan {
 public:
  class Impl;

  [[nodiscard]] std::string_view verb() const;  // "shuffle", "convert", "merge", "check"
  // Absolute. Empty for a check.
  [[nodiscard]] const std::string& destination() const;
  [[nodiscard]] std::uint64_t memory_bytes() const;
  [[nodiscard]] std::size_t stages() const;
  // The members below throw std::out_of_range for a stage or a task that does not exist.
  [[nodiscard]] std::size_t tasks(std::size_t stage) const;
  // "scatter" and "gather"; otherwise the verb.
  [[nodiscard]] std::string_view stage_name(std::size_t stage) const;
  // What the task reads and what it makes; files and patterns as they were given. The outputs of a
  // scatter are in the job folder.
  [[nodiscard]] std::vector<std::string> inputs(std::size_t stage, std::size_t task) const;
  [[nodiscard]] std::vector<std::string> outputs(std::size_t stage, std::size_t task) const;
  // How much data goes through the task.
  [[nodiscard]] std::uint64_t task_bytes(std::size_t stage, std::size_t task) const;

  // Whether its output is there. Once the destination has the result, all tasks are done. The task
  // of a check never is. Throws IoError.
  [[nodiscard]] bool done(std::size_t stage, std::size_t task) const;
  // Whether this very plan, here or in another process, has made what is at the destination, and
  // nobody has changed it since. False, too, if the file system cannot keep extended attributes:
  // that is where the files of a result say so. Throws IoError.
  [[nodiscard]] bool made() const;
  // Every task of the stages before it is done.
  [[nodiscard]] bool ready(std::size_t stage) const;

  // Runs one task unless it is done, on this thread (and those that read), with memory_bytes().
  // The task that completes the last stage publishes the result and removes the job folder. If
  // another process is running the same task, it waits for that one. `progress` is called with the
  // bytes done so far, at least ten times per second, on this thread; it may end the task by
  // throwing.
  //
  // Throws IoError(ENOENT), which names the missing file, if the stage is not ready;
  // IoError(ESTALE) or FormatError if the source is not what it was when the plan was made;
  // IoError(EEXIST) if something has taken the name of the destination; and what reading and
  // writing throw. After an error, finished tasks stay finished and nothing half-made is left of
  // this one.
  void run_task(std::size_t stage, std::size_t task,
                const std::function<void(std::uint64_t done_bytes)>& progress = {}) const;

  // Runs all that is left, here, on threads, within memory_bytes() for all of them together. Then
  // the job folder is removed, also after an error: only a process that died leaves it, and the
  // next run goes on with it. `progress` is called on this thread, at least ten times per second;
  // it may end the run by throwing. Throws as run_task().
  void run(const std::function<void(const JobProgress&)>& progress = {}) const;

  // Removes the job folder, for those who ran tasks one by one and give up. Does nothing if there
  // is none. Throws IoError.
  void clean() const;

  // The plan as text of one line per fact, for another process or machine. from_text throws
  // std::invalid_argument for a text that was changed or comes from another version.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] static Plan from_text(std::string_view text);

  explicit Plan(std::shared_ptr<const Impl> impl);

 private:
  std::shared_ptr<const Impl> impl_;
};

// All of these read headers, indexes and a few samples, and write nothing. Only a shuffle of
// documents that nothing but `eot` separates reads all tokens, to find them. They throw
// std::invalid_argument for a wrong option and for too little memory, with what would be enough;
// IoError(EEXIST) if the destination exists, `overwrite` is not set and Plan::made() is false (if
// it is true, all tasks are done); IoError if it is a folder where a file is due or the reverse, if
// it is a file of the source, or if one cannot write there; and what opening the source throws.

// Position p of the result holds unit order(p) of the source, in the order of
// Array::batches({.order = shuffle, .seed = seed, .epoch = 0}). Documents come out in the format of
// the source, one sequence each, with the token that separates them, if there is one; windows as
// rows of a .npy file in the stored dtype. More shards than units: std::invalid_argument.
[[nodiscard]] Plan plan_shuffle(const JobSource& source, const std::string& destination,
                                const ShuffleOptions& options);

// Tokens become tokens of another format or dtype, or a one-dimensional .npy file; arrays of
// integers with one axis become tokens; arrays become .npy or raw files in C order. Documents are
// kept if the result records them and the source does, or has an `eot`. An id that does not fit is
// a std::invalid_argument that names the document, when the task runs.
[[nodiscard]] Plan plan_convert(const JobSource& source, const std::string& destination,
                                const ConvertOptions& options);

// The sources one after the other in one file: token files of one format and dtype, with their
// documents and sequences as they are, or arrays of one dtype and row shape as one .npy file.
[[nodiscard]] Plan plan_merge(std::span<const JobSource> sources, const std::string& destination,
                              const MergeOptions& options = {});

// One task per file of the source, each as check() of lowtide/info.h; the task throws at the first
// fault. Several files of Megatron pairs count once.
[[nodiscard]] Plan plan_check(const JobSource& source, std::uint64_t memory_bytes = 0);

}  // namespace lowtide
