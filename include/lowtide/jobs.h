// jobs.h - rewrites data that is bigger than memory: shuffle, convert, merge and check, as plans
// made of tasks.
//
//   auto plan = lowtide::plan_shuffle({.paths = {"m.npy"}}, "shuffled.npy", {.seed = 1});
//   plan.run();  // here; or each task on any machine that sees the same files
//
// A plan consists of stages of tasks. The tasks of a stage are independent of each other, and a
// stage can begin when the one before it is done. A task can be run again after any failure; a
// finished task is recognised and skipped. The result appears under its name whole, or not at all:
// until then an old file or folder stays as it was.
//
// Intermediate files are kept in a hidden folder beside the destination, ".NAME.lowtide-job-HASH".
// HASH is derived from the plan, so the same call after a crash finds the finished tasks and
// continues. The bytes of the result do not depend on where the tasks ran or how many ran at once.
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
  // A single path may be a pattern, or for tokens a folder or the prefix of a Megatron pair;
  // several paths form one array or one stream, in this order. They must name the same files on
  // every machine that runs a task; relative paths are made absolute.
  std::vector<std::string> paths;
  bool tokens = false;  // opened as Tokens; otherwise as an Array
  // How to open it. The members `read` are ignored: a job has its own memory_bytes and leaves
  // nothing in the page cache.
  OpenOptions array = {};
  TokensOptions token_options = {};
  // For ragged rows: the files of the offsets, an Array of integers; `paths` are then the values,
  // and row i is values[offsets[i]:offsets[i + 1]].
  std::vector<std::string> offsets = {};
  OpenOptions offsets_array = {};
};

// What is shuffled as a whole: a row of an array (or a ragged row); a document of tokens, if the
// format records documents or `eot` is given; or a window, which is block_size + 1 tokens starting
// at token k * block_size.
enum class Unit { row, document, window };
// The enumerator's name, and the reverse. parse_unit throws std::invalid_argument, which lists the
// words.
[[nodiscard]] std::string_view unit_word(Unit unit);
[[nodiscard]] Unit parse_unit(std::string_view word);

struct ShuffleOptions {
  Unit unit = Unit::row;
  std::uint64_t block_size = 0;  // of windows; each becomes a row of block_size + 1 tokens
  std::uint64_t seed = 0;
  // 1: the destination is a file (two in Megatron's format). More: it is a folder of files named
  // "part-00000-of-00064.npy" (or as the format requires), which together hold one global order.
  // Ragged rows always make a folder, with "values.npy" and "offsets.npy", or with folders "values"
  // and "offsets" of such parts; the offsets of all parts, one after the other, are offsets into
  // all values.
  std::uint64_t shards = 1;
  // The most that Plan::run holds, in bytes, and the most that each task holds if it is run
  // elsewhere. 0: default_memory_bytes() of the machine that makes the plan.
  std::uint64_t memory_bytes = 0;
  // Replaces an existing destination: a file by a file, or a folder by a folder if it contains only
  // files that a job makes.
  bool overwrite = false;
};

struct ConvertOptions {
  // A word of token_writer_formats(), "npy" or "raw".
  std::string format;
  // The type of the result; nullopt: as in the source. If it differs from the source, both must be
  // integers, on one axis.
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
  // The files that the task reads and writes, with paths and patterns as they were given. The
  // outputs of a scatter are in the job folder.
  [[nodiscard]] std::vector<std::string> inputs(std::size_t stage, std::size_t task) const;
  [[nodiscard]] std::vector<std::string> outputs(std::size_t stage, std::size_t task) const;
  // How much data goes through the task.
  [[nodiscard]] std::uint64_t task_bytes(std::size_t stage, std::size_t task) const;

  // Whether the output of the task exists. Once the result is at the destination, all tasks are
  // done. The tasks of a check are never done. Throws IoError.
  [[nodiscard]] bool done(std::size_t stage, std::size_t task) const;
  // Whether this very plan, run here or in another process, made what is at the destination, and it
  // has not been changed since. The files of a result record this in extended attributes, so it is
  // also false if the file system does not support those. Throws IoError.
  [[nodiscard]] bool made() const;
  // Whether every task of the stages before it is done.
  [[nodiscard]] bool ready(std::size_t stage) const;

  // Runs one task unless it is done, on this thread (and those that read), with memory_bytes().
  // The task that completes the last stage publishes the result and removes the job folder. If
  // another process is running the same task, it waits for that one. `progress` is called with the
  // bytes done so far, at least ten times per second, on this thread; it may end the task by
  // throwing.
  //
  // Throws IoError(ENOENT), which names the missing file, if the stage is not ready;
  // IoError(ESTALE) or FormatError if the source has changed since the plan was made;
  // IoError(EEXIST) if something has taken the name of the destination; and whatever reading and
  // writing throw. After an error, finished tasks stay finished, and nothing of this one is left.
  void run_task(std::size_t stage, std::size_t task,
                const std::function<void(std::uint64_t done_bytes)>& progress = {}) const;

  // Runs all unfinished tasks here, on threads that together stay within memory_bytes(). Then the
  // job folder is removed, even after an error; only a process that was killed leaves it, and the
  // next run continues from it. `progress` is called on this thread, at least ten times per second;
  // it may end the run by throwing. Throws as run_task().
  void run(const std::function<void(const JobProgress&)>& progress = {}) const;

  // Removes the job folder. Call it if you ran tasks one by one and do not want to finish. Does
  // nothing if there is none. Throws IoError.
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
// documents that are separated by `eot` alone reads all tokens, to find them. They throw
// - std::invalid_argument for a wrong option, and for too little memory, with the amount that would
//   be enough;
// - IoError(EEXIST) if the destination exists, `overwrite` is not set and Plan::made() is false (if
//   it is true, all tasks are done);
// - IoError if the destination is a folder where a file is needed or the reverse, is a file of the
//   source, or cannot be written;
// - and whatever opening the source throws.

// Position p of the result holds unit order(p) of the source, in the order of
// Array::batches({.order = shuffle, .seed = seed, .epoch = 0}). Documents are written in the format
// of the source, one sequence each, including the token that separates them, if there is one.
// Windows are written as rows of a .npy file in the stored dtype. Throws std::invalid_argument if
// there are more shards than units.
[[nodiscard]] Plan plan_shuffle(const JobSource& source, const std::string& destination,
                                const ShuffleOptions& options);

// Tokens become tokens of another format or dtype, or a one-dimensional .npy file; arrays of
// integers with one axis become tokens; arrays become .npy or raw files in C order. Documents are
// kept if the result can record them and the source records them or has an `eot`. For an id that
// does not fit, the task throws std::invalid_argument when it runs, and names the document.
[[nodiscard]] Plan plan_convert(const JobSource& source, const std::string& destination,
                                const ConvertOptions& options);

// The sources one after the other in one file: token files of one format and dtype, with their
// documents and sequences as they are, or arrays of one dtype and row shape as one .npy file.
[[nodiscard]] Plan plan_merge(std::span<const JobSource> sources, const std::string& destination,
                              const MergeOptions& options = {});

// One task per file of the source (per pair of Megatron files), each like check() of
// lowtide/info.h; a task throws at the first fault.
[[nodiscard]] Plan plan_check(const JobSource& source, std::uint64_t memory_bytes = 0);

}  // namespace lowtide
