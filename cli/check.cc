#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "failure.h"
#include "files.h"
#include "lowtide/bytes.h"
#include "lowtide/command/json.h"
#include "lowtide/command/terminal.h"
#include "lowtide/info.h"
#include "stop.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

struct CheckWords {
  std::string vocab, eot;
  bool nan = false;
  std::string memory = "64MiB";
};

std::string text_of(const CheckResult& result) {
  const Info& found = result.info;
  Fields fields;
  const bool several = has_several_arrays(found);
  fields.add(found.kind == FileKind::tokens ? "tokens"
             : several                      ? "contains"
                                            : "shape",
             shape_text(found));
  if (!several) fields.add("dtype", shown(found.dtype));
  fields.add("format", found.format);
  if (found.documents) fields.add("documents", grouped(*found.documents));
  if (result.highest_token) fields.add("highest", grouped(*result.highest_token));
  if (result.nan) fields.add("NaN", grouped(*result.nan));
  if (result.infinite) fields.add("infinite", grouped(*result.infinite));
  fields.add("read", format_bytes(result.read_bytes) + " in " + format_fixed(result.seconds, 2) +
                         " s (" + rate_text(result.read_bytes, result.seconds) + ")");
  for (const std::string& note : result.notes) fields.add("note", shown(note));
  return paint(shown(found.path), Tone::bold) + "  " + paint("good", Tone::good) + "\n" +
         fields.text();
}

// One file of several.
std::string line_of(const CheckResult& result) {
  const Info& found = result.info;
  const bool tokens = found.kind == FileKind::tokens;
  return paint("good", Tone::good) + "  " + shown(found.path) + ": " +
         (tokens                      ? shape_text(found) + " tokens"
          : has_several_arrays(found) ? shape_text(found)
                                      : shown(found.dtype) + " " + shape_text(found)) +
         ", " + format_bytes(result.read_bytes) + " in " + format_fixed(result.seconds, 2) + " s\n";
}

void write_result(JsonWriter* json, const CheckResult& result) {
  json->begin_object().field("good", true).key("info");
  write_info(json, result.info);
  json->field("read", result.read_bytes)
      .field("seconds", result.seconds)
      .field("highest_token", result.highest_token)
      .field("nan", result.nan)
      .field("infinite", result.infinite)
      .field("notes", result.notes)
      .end_object();
}

CheckOptions check_options(const FileWords& words, const CheckWords& more) {
  CheckOptions options;
  options.file = info_options(words);
  if (!more.vocab.empty()) options.vocab = parse_count(more.vocab, "--vocab");
  if (!more.eot.empty()) options.eot = parse_count(more.eot, "--eot");
  options.count_nan = more.nan;
  options.memory_bytes = parse_size(more.memory, "--memory");
  return options;
}

CheckResult check_shown(const std::string& file, CheckOptions options, const StopSignals& stop) {
  Progress progress("check");
  options.progress = [&](std::uint64_t done, std::uint64_t all) {
    progress.show(done, all);
    if (stop.came()) throw Stopped{done, all};
  };
  return check(file, options);
}

// Checks files one after the other and reports each result as soon as it is known.
class Checking {
 public:
  Checking(const FileWords& words, CheckOptions options)
      : words_(words), options_(std::move(options)), several_(words.files.size() > 1) {
    if (several_) json_.begin_object().key("files").begin_array();
  }

  int run() {
    const StopSignals stop;
    for (std::size_t i = 0; i < words_.files.size() && !stopped_; ++i) check_one(i, stop);
    if (several_) json_.end_array().end_object();
    if (words_.json && (several_ || !stopped_)) print(json_.text() + "\n");
    if (!words_.json && several_) print(total());
    return stopped_ ? stop.exit_code() : code_;
  }

 private:
  void check_one(std::size_t i, const StopSignals& stop) {
    const std::string& file = words_.files[i];
    try {
      const CheckResult result = check_shown(file, options_, stop);
      ++good_;
      if (words_.json) {
        write_result(&json_, result);
      } else {
        print(several_ ? line_of(result) : text_of(result));
      }
    } catch (const Stopped& at) {
      stopped_ = true;
      const std::size_t left = words_.files.size() - i - 1;
      tell("check", "stopped after " + format_bytes(at.done_bytes) + " of " +
                        format_bytes(at.all_bytes) + (several_ ? " of " + file : "") +
                        ": no fault found so far" +
                        (left == 0 ? "" : "; files not checked: " + grouped(left)));
    } catch (...) {
      tell_fault(file);
    }
  }

  // Reports the exception being handled. An I/O error counts as a fault of the file too: bytes
  // that the disk cannot deliver are as lost as wrong ones.
  void tell_fault(const std::string& file) {
    const Failure failure = failure_now();
    code_ = std::max(code_, failure.code);
    ++bad_;
    if (words_.json) {
      json_.begin_object().field("good", false).field("path", file);
      json_.field("error", failure.message).end_object();
    } else if (several_) {
      print(paint("bad", Tone::bad) + "   " + shown(file) + "\n");
    }
    tell("check", failure.message);
  }

  [[nodiscard]] std::string total() const {
    return grouped(good_ + bad_) + (good_ + bad_ == 1 ? " file: " : " files: ") + grouped(good_) +
           " good, " + grouped(bad_) + " bad\n";
  }

  const FileWords& words_;
  CheckOptions options_;
  bool several_;
  JsonWriter json_;
  std::uint64_t good_ = 0, bad_ = 0;
  bool stopped_ = false;
  int code_ = kDone;
};

}  // namespace

Action add_check(CLI::App& app) {
  const auto words = add_file_words(app, true);
  const auto more = std::make_shared<CheckWords>();
  app.add_option("--vocab", more->vocab, "Vocabulary size: every token must be below it")
      ->type_name("N");
  app.add_option("--eot", more->eot, "The token that must end every document")->type_name("N");
  app.add_flag("--nan", more->nan, "Count NaN and infinite values in an array of floats");
  app.add_option("--memory", more->memory, "The memory budget, such as 64MiB")->type_name("SIZE");
  return
      [words, more](const Call&) { return Checking(*words, check_options(*words, *more)).run(); };
}

}  // namespace lowtide::cli
