#include "lowtide/command/demo.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "failure.h"
#include "lowtide/bytes.h"
#include "lowtide/command/cache.h"
#include "lowtide/command/json.h"
#include "lowtide/command/run_command.h"
#include "lowtide/profile.h"
#include "outputs.h"
#include "stop.h"
#include "terminal.h"
#include "verb.h"

// The demo starts itself again on two levels. The first process only removes the folder at the
// end, however the second one ends (Ctrl-C reaches both). The second makes the matrix and prints
// the results. Each method runs in a process of its own, which profiles itself, so that no method
// inherits memory from the one before.
namespace lowtide::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kReadingsEvery_s = 0.02;
constexpr std::uint64_t kLeastBytes = 1 << 20;

struct DemoWords {
  std::string size = "256MiB", folder, output;
  double seconds = 3;
  bool json = false;
  std::string inside, method;  // passed by the demo to itself
};

// What one method did.
struct Shown {
  DemoMethod method;
  int exit_code = 0;
  DemoRate rate;
  std::optional<Recording> recording;  // empty: it failed
  std::optional<std::uint64_t> cache_grown_bytes;
};

class Removed {
 public:
  explicit Removed(std::string folder) : folder_(std::move(folder)) {}
  ~Removed() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Removed(const Removed&) = delete;
  Removed& operator=(const Removed&) = delete;

 private:
  std::string folder_;
};

std::string matrix_of(const DemoWords& words) {
  return words.inside + "/matrix.f32";
}

std::string itself() {
  return fs::read_symlink("/proc/self/exe").string();
}

int run_again(const std::vector<std::string>& arguments) {
  const CommandEnd end = run_command({.arguments = arguments, .variables = {}});
  if (!end.error.empty()) tell("demo", end.error);
  return end.exit_code;
}

int run_outside(const DemoWords& words) {
  const std::string folder = make_demo_folder(words.folder);
  const Removed removed(folder);
  std::vector<std::string> again{itself(), "demo",     "--inside",  folder,
                                 "--size", words.size, "--seconds", std::to_string(words.seconds)};
  if (words.json) again.push_back("--json");
  if (!words.output.empty()) again.insert(again.end(), {"-o", words.output});
  return run_again(again);
}

int run_method(const DemoWords& words) {
  const std::string path = matrix_of(words), name = words.inside + "/" + words.method;
  ProfileOptions options;
  options.interval_s = kReadingsEvery_s;
  options.command = {"lowtide", "demo: " + words.method};
  options.watch_files = {path};
  Profile profile(options);
  const DemoRate rate =
      read_demo_matrix(path, words.method, words.seconds, [&] { profile.stop(kDone); });
  profile.recording().save(name + ".trace");
  std::ofstream(name + ".rate") << rate.rows << " " << rate.seconds << " " << rate.bytes_read << " "
                                << rate.bytes_asked << "\n";
  return kDone;
}

std::optional<std::uint64_t> cached_bytes(const std::string& path) {
  return cache_state(path, 1).cached_bytes;
}

Shown show_method(const DemoWords& words, const DemoMethod& method) {
  const std::string path = matrix_of(words);
  Shown shown{.method = method, .rate = {}, .recording = {}, .cache_grown_bytes = {}};
  const std::optional<std::uint64_t> before = evict_file(path).after_bytes;
  shown.exit_code = run_again({itself(), "demo", "--inside", words.inside, "--method", method.word,
                               "--seconds", std::to_string(words.seconds)});
  if (shown.exit_code != kDone) return shown;
  const std::optional<std::uint64_t> after = cached_bytes(path);
  if (before && after) shown.cache_grown_bytes = *after - std::min(*after, *before);
  const std::string name = words.inside + "/" + method.word;
  std::ifstream(name + ".rate") >> shown.rate.rows >> shown.rate.seconds >> shown.rate.bytes_read >>
      shown.rate.bytes_asked;
  shown.recording = Recording::load(name + ".trace");
  return shown;
}

std::optional<double> rate_of(const Shown& shown) {
  if (!shown.recording || shown.rate.seconds <= 0) return std::nullopt;
  return static_cast<double>(shown.rate.rows) / shown.rate.seconds;
}

Peak peak_of(const Shown& shown) {
  return shown.recording ? shown.recording->peak() : Peak{};
}

const Shown& shown_of(const std::vector<Shown>& all, const char* word) {
  return *std::ranges::find(all, word, [](const Shown& shown) { return shown.method.word; });
}

// Bytes requested from the operating system per byte delivered; known for Lowtide's methods only.
std::optional<double> read_per_byte(const Shown& shown) {
  if (shown.rate.bytes_asked == 0) return std::nullopt;
  return static_cast<double>(shown.rate.bytes_read) / static_cast<double>(shown.rate.bytes_asked);
}

std::string table_of(const std::vector<Shown>& all) {
  using enum Table::Align;
  Table table({{"method"},
               {"rows/s", right},
               {"peak heap", right},
               {"peak mapped", right},
               {"page cache growth", right}});
  for (const Shown& shown : all) {
    const Peak peak = peak_of(shown);
    const std::optional<double> rate = rate_of(shown);
    table.add_row({shown.method.title,
                   rate ? count_text(static_cast<std::uint64_t>(std::llround(*rate))) : "unknown",
                   bytes_text(peak.anon), bytes_text(peak.file),
                   bytes_text(shown.cache_grown_bytes)});
  }
  return table.text();
}

std::string sentences_of(const std::vector<Shown>& all) {
  const Shown &map = shown_of(all, "mmap"), &ours = shown_of(all, "lowtide");
  const Shown& past = shown_of(all, "lowtide-drop");
  const Peak held = peak_of(ours);
  const std::optional<double> read = read_per_byte(past);
  return wrapped(
      "Read in shuffled order, the map grew to " + bytes_text(peak_of(map).file) +
          " of mapped file pages. The usual workarounds left " +
          bytes_text(shown_of(all, "mmap-dontneed").cache_grown_bytes) + " and " +
          bytes_text(shown_of(all, "pread").cache_grown_bytes) +
          " in the page cache. Lowtide held " + bytes_text(held.anon) + " of heap and " +
          bytes_text(held.file) +
          " of mapped file pages. By default it leaves a file that is small compared with memory "
          "in the page cache (" +
          bytes_text(ours.cache_grown_bytes) + "); with cache drop it left " +
          bytes_text(past.cache_grown_bytes) + " there and read " +
          (read ? format_fixed(*read, 1) : "unknown") +
          " bytes per byte delivered, because rows that are close on disk share one request. The "
          "other methods are fast only once the whole file is cached, which never happens with a "
          "file larger than memory.",
      output().columns, 0);
}

std::string json_of(const DemoWords& words, const std::vector<Shown>& all) {
  const std::uint64_t bytes = fs::file_size(matrix_of(words));
  JsonWriter json;
  json.begin_object().field("bytes", bytes).field("rows", bytes / kDemoRowBytes);
  json.field("row_bytes", kDemoRowBytes).field("memory", kDemoMemoryBytes);
  json.key("methods").begin_array();
  for (const Shown& shown : all) {
    const Peak peak = peak_of(shown);
    json.begin_object().field("method", shown.method.word).field("exit", shown.exit_code);
    json.field("rows", shown.rate.rows).field("seconds", shown.rate.seconds);
    json.field("rows_per_second", rate_of(shown));
    json.field("read_per_byte", read_per_byte(shown));
    json.key("peak").begin_object().field("rss", peak.rss).field("anon", peak.anon);
    json.field("file", peak.file).field("page_tables", peak.page_tables).end_object();
    json.field("page_cache_grown", shown.cache_grown_bytes).key("verdict");
    shown.recording ? json.value(verdict_word(shown.recording->verdict().kind)) : json.null();
    json.end_object();
  }
  json.end_array().end_object();
  return json.text() + "\n";
}

// "m.html" -> "m-mmap.html" for the map, "m-lowtide.html" for Lowtide.
void save_reports(const std::string& output, const std::vector<Shown>& all) {
  for (const Shown* const shown : {&shown_of(all, "mmap"), &shown_of(all, "lowtide")}) {
    if (!shown->recording) continue;
    fs::path path(output);
    path.replace_filename(path.stem().string() + "-" + shown->method.word +
                          path.extension().string());
    shown->recording->save(path.string());
  }
}

// 0, or 128 + n if signal n ended it. Signals are held back only here: the processes that run the
// methods must receive them as usual.
int make_matrix(const DemoWords& words, Progress* progress) {
  const StopSignals stop;
  const auto show = [&](std::uint64_t done, std::uint64_t whole) {
    progress->show(done, whole);
    if (stop.came()) throw Stopped{done, whole};
  };
  try {
    write_demo_matrix(matrix_of(words), parse_bytes(words.size), show);
  } catch (const Stopped&) {
    return stop.exit_code();
  }
  return kDone;
}

int show_all(const DemoWords& words, std::vector<Shown>* all) {
  Progress progress("demo");
  if (const int code = make_matrix(words, &progress); code != kDone) return code;
  const std::vector<DemoMethod>& methods = demo_methods();
  for (std::size_t i = 0; i < methods.size(); ++i) {
    progress.show_step(methods[i].title, i, methods.size());
    all->push_back(show_method(words, methods[i]));
    if (all->back().exit_code > 128) return all->back().exit_code;  // a signal, such as Ctrl-C
  }
  return kDone;
}

int run_inside(const DemoWords& words) {
  std::vector<Shown> all;
  if (const int code = show_all(words, &all); code != kDone) return code;
  if (!words.output.empty()) save_reports(words.output, all);
  print(words.json ? json_of(words, all) : table_of(all) + "\n" + sentences_of(all) + "\n");
  for (const Shown& shown : all) {
    if (shown.exit_code != kDone) return kFailed;
  }
  return kDone;
}

}  // namespace

Action add_demo(CLI::App& app) {
  const auto words = std::make_shared<DemoWords>();
  app.add_option("--size", words->size, "Size of the generated matrix (default: 256MiB)")
      ->type_name("SIZE");
  app.add_option("--seconds", words->seconds, "At most this many seconds per method (default: 3)")
      ->type_name("S");
  app.add_option("--folder", words->folder, "Where to put the matrix; it is removed at the end")
      ->type_name("FOLDER");
  app.add_option("-o,--output", words->output,
                 "Write one report for the map and one for Lowtide: m.html gives m-mmap.html and "
                 "m-lowtide.html; .svg, .json, .dat and .trace also work")
      ->type_name("FILE");
  app.add_flag("--json", words->json, "Print one JSON object instead of text");
  app.add_option("--inside", words->inside)->group("");
  app.add_option("--method", words->method)->group("");
  return [words](const Call&) {
    if (!words->method.empty()) return run_method(*words);
    if (!words->inside.empty()) return run_inside(*words);
    if (parse_bytes(words->size) < kLeastBytes) {
      throw std::invalid_argument("--size: expected at least 1MiB, found " + words->size);
    }
    if (!(words->seconds > 0 && words->seconds <= 3600)) {  // also refuses NaN
      throw std::invalid_argument("--seconds: expected a number above 0 and at most 3600");
    }
    if (!words->output.empty()) check_output(words->output);
    return run_outside(*words);
  };
}

}  // namespace lowtide::cli
