#include "lowtide/command/cache.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "failure.h"
#include "lowtide/bytes.h"
#include "lowtide/command/json.h"
#include "lowtide/command/terminal.h"
#include "stop.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

constexpr std::size_t kMostParts = 100;

struct CacheWords {
  std::vector<std::string> files;
  bool evict = false;
  bool warm = false;
  bool json = false;
};

// JSON output does not depend on the terminal's width.
std::size_t strip_columns(bool json) {
  constexpr std::size_t kIndent = 2;
  const std::size_t columns = output().columns;
  if (json || columns == 0) return 60;
  return std::min(kMostParts, std::max<std::size_t>(columns, 10) - 2 * kIndent);
}

// A block is full only if its whole part is cached, and empty only if none of it is.
std::string strip_of(const std::vector<double>& parts) {
  constexpr const char* kBlocks[] = {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr const char* kLetters[] = {".", ":", "+", "#"};
  std::string strip;
  for (const double share : parts) {
    const std::size_t full = output().unicode ? std::size(kBlocks) - 1 : std::size(kLetters) - 1;
    std::size_t level = 0;
    if (share >= 1) {
      level = full;
    } else if (share > 0) {
      level = 1 + static_cast<std::size_t>(share * static_cast<double>(full - 1));
    }
    strip += output().unicode ? kBlocks[level] : kLetters[level];
  }
  return strip;
}

std::string text_of(const CacheState& state) {
  std::string text = paint(shown(state.path), Tone::bold) + "\n";
  if (!state.parts.empty()) text += "  " + strip_of(state.parts) + "\n";
  Fields fields;
  if (state.cached_bytes) {
    fields.add("cached", format_bytes(*state.cached_bytes) + " of " + format_bytes(state.bytes) +
                             " (" + percent_text(*state.cached_bytes, state.bytes) + ")");
    if (state.dirty_bytes.value_or(0) > 0) {
      fields.add("dirty", format_bytes(*state.dirty_bytes) + ", not yet on the disk");
    }
  } else {
    fields.add("size", format_bytes(state.bytes));
    fields.add("cached", "unknown: " + state.unknown);
  }
  return text + fields.text();
}

std::string bytes_or_unknown(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(*bytes) : "unknown";
}

std::string text_of(const CacheChange& change) {
  Fields fields;
  fields.add("cached", bytes_or_unknown(change.before_bytes) + " before, " +
                           bytes_or_unknown(change.after_bytes) + " of " +
                           format_bytes(change.bytes) + " now");
  return paint(shown(change.path), Tone::bold) + "\n" + fields.text();
}

void tell_reasons(const CacheChange& change, bool evict) {
  for (const std::string& warning : change.warnings) {
    tell("cache", "warning: " + change.path + ": " + warning);
  }
  for (const std::string& reason : change.reasons) {
    const bool known = change.after_bytes.has_value();
    const std::string what = !known  ? ""
                             : evict ? "some pages are still cached: "
                                     : "some pages are not cached: ";
    tell("cache", change.path + ": " + what + reason);
  }
}

CacheChange change_file(const std::string& path, bool evict, const StopSignals& stop) {
  Progress progress(evict ? "evict" : "warm");
  const auto show = [&](std::uint64_t done, std::uint64_t all) {
    progress.show(done, all);
    return !stop.came();
  };
  return evict ? evict_file(path, show) : warm_file(path, show);
}

std::string total_of(const std::vector<CacheState>& states) {
  std::uint64_t cached = 0;
  std::uint64_t bytes = 0;
  bool known = true;
  for (const CacheState& state : states) {
    known = known && state.cached_bytes.has_value();
    cached += state.cached_bytes.value_or(0);
    bytes += state.bytes;
  }
  if (!known) return "";
  return grouped(states.size()) + " files: " + format_bytes(cached) + " of " + format_bytes(bytes) +
         " cached (" + percent_text(cached, bytes) + ")\n";
}

class FileList {
 public:
  FileList() { json_.begin_object().key("files").begin_array(); }

  void add(const CacheState& state) {
    json_.begin_object()
        .field("path", state.path)
        .field("bytes", state.bytes)
        .field("cached", state.cached_bytes)
        .field("dirty", state.dirty_bytes)
        .key("unknown");
    state.cached_bytes ? json_.null() : json_.value(state.unknown);
    json_.field("parts", state.parts).end_object();
  }

  void add(const CacheChange& change) {
    json_.begin_object()
        .field("path", change.path)
        .field("bytes", change.bytes)
        .field("before", change.before_bytes)
        .field("after", change.after_bytes)
        .field("done", change.done)
        .field("reasons", change.reasons)
        .field("warnings", change.warnings)
        .end_object();
  }

  void add_failure(const std::string& path, const std::string& error) {
    write_failure(&json_, path, error);
  }

  [[nodiscard]] std::string text() {
    json_.end_array().end_object();
    return json_.text() + "\n";
  }

 private:
  JsonWriter json_;
};

struct Named {
  std::string path;
  std::exception_ptr error;  // why the word names no file; reported when its turn comes
};

std::vector<Named> files_named(const std::vector<std::string>& words) {
  std::vector<Named> files;
  for (const std::string& word : words) {
    try {
      for (const std::string& path : files_of(word)) files.push_back({path, nullptr});
    } catch (...) {
      files.push_back({word, std::current_exception()});
    }
  }
  return files;
}

// Reports the exception being handled; returns its exit code.
int fail(const std::string& path, FileList* list) {
  const Failure failure = failure_now();
  tell("cache", failure.message);
  list->add_failure(path, failure.message);
  return failure.code;
}

int change_files(const std::vector<Named>& files, const CacheWords& words) {
  int code = kDone;
  FileList list;
  const StopSignals stop;
  for (std::size_t i = 0; i < files.size() && !stop.came(); ++i) {
    try {
      if (files[i].error) std::rethrow_exception(files[i].error);
      const CacheChange change = change_file(files[i].path, words.evict, stop);
      list.add(change);
      if (!words.json) print(text_of(change));
      tell_reasons(change, words.evict);
      if (!change.done) code = std::max(code, kFailed);
    } catch (...) {
      code = std::max(code, fail(files[i].path, &list));
    }
    const std::size_t left = files.size() - i - 1;
    if (stop.came() && left > 0) {
      tell("cache", "stopped: " + grouped(left) + " of " + grouped(files.size()) +
                        " files were not touched");
    }
  }
  if (words.json) print(list.text());
  return stop.came() ? stop.exit_code() : code;
}

int show_files(const std::vector<Named>& files, const CacheWords& words) {
  int code = kDone;
  FileList list;
  std::vector<CacheState> states;
  for (const Named& file : files) {
    try {
      if (file.error) std::rethrow_exception(file.error);
      states.push_back(cache_state(file.path, strip_columns(words.json)));
      list.add(states.back());
      if (!words.json) print(text_of(states.back()));
    } catch (...) {
      code = std::max(code, fail(file.path, &list));
    }
  }
  if (words.json) print(list.text());
  if (!words.json && states.size() > 1) print(total_of(states));
  return code;
}

}  // namespace

Action add_cache(CLI::App& app) {
  const auto words = std::make_shared<CacheWords>();
  app.add_option("FILE", words->files, "Files, quoted patterns, or folders that contain files")
      ->required()
      ->type_name("");
  CLI::Option* const evict = app.add_flag("--evict", words->evict,
                                          "Evict the files from the page cache, after writing "
                                          "dirty pages to disk");
  app.add_flag("--warm", words->warm, "Load the files into the page cache")->excludes(evict);
  app.add_flag("--json", words->json, "Print one JSON object instead of text");
  return [words](const Call&) {
    const std::vector<Named> files = files_named(words->files);
    const bool changes = words->evict || words->warm;
    return changes ? change_files(files, *words) : show_files(files, *words);
  };
}

}  // namespace lowtide::cli
