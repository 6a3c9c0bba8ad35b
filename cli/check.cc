#include <CLI/CLI.hpp>
#include <string>

#include "failure.h"
#include "files.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
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
  Facts facts;
  facts.add(found.kind == FileKind::tokens ? "tokens" : "shape", shape_text(found));
  facts.add("dtype", shown(found.dtype));
  facts.add("format", found.format);
  if (found.documents) facts.add("documents", count_text(*found.documents));
  if (result.highest_token) facts.add("highest", count_text(*result.highest_token));
  if (result.nan) facts.add("NaN", count_text(*result.nan));
  if (result.infinite) facts.add("infinite", count_text(*result.infinite));
  facts.add("read", format_bytes(result.read_bytes) + " in " + format_fixed(result.seconds, 2) +
                        " s (" + rate_text(result.read_bytes, result.seconds) + ")");
  for (const std::string& note : result.notes) facts.add("note", shown(note));
  return paint(shown(found.path), Tone::bold) + "  " + paint("good", Tone::good) + "\n" +
         facts.text();
}

std::string json_of(const CheckResult& result) {
  JsonWriter json;
  json.begin_object().field("good", true).key("info");
  write_info(&json, result.info);
  json.field("read", result.read_bytes)
      .field("seconds", result.seconds)
      .field("highest_token", result.highest_token)
      .field("nan", result.nan)
      .field("infinite", result.infinite)
      .field("notes", result.notes)
      .end_object();
  return json.text() + "\n";
}

std::string json_of(const std::string& path, const std::string& error) {
  JsonWriter json;
  json.begin_object().field("good", false).field("path", path).field("error", error).end_object();
  return json.text() + "\n";
}

CheckOptions check_options(const FileWords& words, const CheckWords& more) {
  CheckOptions options;
  options.file = info_options(words);
  if (!more.vocab.empty()) options.vocab = parse_count(more.vocab, "--vocab");
  if (!more.eot.empty()) options.eot = parse_count(more.eot, "--eot");
  options.count_nan = more.nan;
  options.memory_bytes = parse_bytes(more.memory);
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

// Bytes that the disk does not give are a fault of the file too.
int tell_fault(const FileWords& words, const std::exception& error) {
  const int code = tell_failure("check");
  if (words.json && code == kFailed) print(json_of(words.files.front(), error.what()));
  return code;
}

}  // namespace

Run add_check(CLI::App& app) {
  const auto words = add_file_words(app, false);
  const auto more = std::make_shared<CheckWords>();
  app.add_option("--vocab", more->vocab, "Tokens must be from 0 to below this")->type_name("N");
  app.add_option("--eot", more->eot, "The token that every document ends with")->type_name("N");
  app.add_flag("--nan", more->nan, "Count what is no number in an array of floats");
  app.add_option("--memory", more->memory, "What it may hold: 64MiB")->type_name("SIZE");
  return [words, more](const Call&) {
    const CheckOptions options = check_options(*words, *more);
    const StopSignals stop;
    try {
      const CheckResult result = check_shown(words->files.front(), options, stop);
      print(words->json ? json_of(result) : text_of(result));
    } catch (const Stopped& at) {
      tell("check", "stopped after " + format_bytes(at.done_bytes) + " of " +
                        format_bytes(at.all_bytes) + ": no fault up to there");
      return stop.exit_code();
    } catch (const FormatError& error) {
      return tell_fault(*words, error);
    } catch (const IoError& error) {
      return tell_fault(*words, error);
    }
    return kDone;
  };
}

}  // namespace lowtide::cli
