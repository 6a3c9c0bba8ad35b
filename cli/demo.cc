#include "lowtide/command/demo.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "demo_results.h"
#include "failure.h"
#include "files.h"
#include "lowtide/bytes.h"
#include "lowtide/command/cache.h"
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
constexpr int kKilled = 128 + 9;  // by the kernel, for lack of memory

struct DemoWords {
  std::string size = "256MiB", folder, group;
  std::vector<std::string> outputs;
  double seconds = 3;
  bool json = false;
  std::string inside, method;  // passed by the demo to itself
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
  if (!words.group.empty()) again.insert(again.end(), {"--group", words.group});
  for (const std::string& output : words.outputs) again.insert(again.end(), {"-o", output});
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
  std::ofstream out(name + ".rate");
  out << rate.rows << " " << rate.seconds << " " << rate.bytes_read << " " << rate.bytes_asked;
  if (rate.disk_bytes) out << " " << *rate.disk_bytes;
  return kDone;
}

DemoRate load_rate(const std::string& path) {
  DemoRate rate;
  std::ifstream in(path);
  in >> rate.rows >> rate.seconds >> rate.bytes_read >> rate.bytes_asked;
  if (std::uint64_t disk_bytes = 0; in >> disk_bytes) rate.disk_bytes = disk_bytes;
  return rate;
}

// In a memory group, if `group` is not empty.
DemoResult measure(const DemoWords& words, const DemoMethod& method, const std::string& group) {
  const std::string path = matrix_of(words), name = words.inside + "/" + method.word;
  DemoResult result{.method = method, .rate = {}, .recording = {}, .cache_grown_bytes = {}};
  const std::optional<std::uint64_t> before = evict_file(path).after_bytes;
  std::vector<std::string> again{
      itself(),   "demo",      "--inside",  words.inside,
      "--method", method.word, "--seconds", std::to_string(words.seconds)};
  if (!group.empty()) {
    const char* const enter = "echo $$ >\"$0/cgroup.procs\" && exec \"$@\"";
    again.insert(again.begin(), {"/bin/sh", "-c", enter, group});
  }
  result.exit_code = run_again(again);
  if (result.exit_code != kDone) return result;
  const std::optional<std::uint64_t> after = cache_state(path, 1).cached_bytes;
  if (before && after) result.cache_grown_bytes = *after - std::min(*after, *before);
  result.rate = load_rate(name + ".rate");
  result.recording = Recording::load(name + ".trace");
  return result;
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

// 0, or 128 + n if signal n, such as Ctrl-C, ended one of them.
int measure_all(const DemoWords& words, DemoResults* results) {
  Progress progress("demo");
  if (const int code = make_matrix(words, &progress); code != kDone) return code;
  results->file_bytes = fs::file_size(matrix_of(words));
  const std::vector<DemoMethod>& methods = demo_methods();
  const std::size_t steps = words.group.empty() ? methods.size() : 2 * methods.size();
  for (std::size_t i = 0; i < steps; ++i) {
    const bool limited = i >= methods.size();
    const DemoMethod& method = methods[i % methods.size()];
    progress.show_step(method.title, i, steps);
    std::vector<DemoResult>& into = limited ? results->limited : results->free;
    into.push_back(measure(words, method, limited ? words.group : ""));
    const int code = into.back().exit_code;
    if (code > 128 && code != kKilled) return code;
  }
  return kDone;
}

int run_inside(const DemoWords& words) {
  DemoResults results{.seconds = words.seconds, .free = {}, .limited = {}};
  if (!words.group.empty()) results.limit_bytes = demo_group_limit(words.group);
  if (const int code = measure_all(words, &results); code != kDone) return code;
  for (const std::string& output : words.outputs) {
    save_comparison(demo_comparison(results), output);
  }
  print(words.json ? demo_json(results) : demo_text(results));
  for (const auto& some : {results.free, results.limited}) {
    for (const DemoResult& result : some) {
      if (result.exit_code != kDone) return kFailed;
    }
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
  app.add_option(
         "--group", words->group,
         "Run each method again inside this memory group, given as the folder of its cgroup")
      ->type_name("FOLDER");
  app.add_option("-o,--output", words->outputs,
                 "Write a page with the memory of each method (.html), or four of its pictures "
                 "(.svg); may be given several times")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_flag("--json", words->json, "Print one JSON object instead of text");
  app.add_option("--inside", words->inside)->group("");
  app.add_option("--method", words->method)->group("");
  return [words](const Call&) {
    if (!words->method.empty()) return run_method(*words);
    if (!words->inside.empty()) return run_inside(*words);
    if (parse_size(words->size, "--size") < kLeastBytes) {
      throw std::invalid_argument("--size: expected at least 1 MiB, found \"" + words->size + "\"");
    }
    if (!(words->seconds > 0 && words->seconds <= 3600)) {  // also refuses NaN
      throw std::invalid_argument("--seconds: expected a number above 0 and at most 3600, found " +
                                  format_fixed(words->seconds, 3));
    }
    if (!words->folder.empty() && !fs::is_directory(words->folder)) {
      throw std::invalid_argument("--folder: expected an existing folder, found \"" +
                                  words->folder + "\"");
    }
    for (const std::string& output : words->outputs) check_output(output, {".html", ".svg"});
    if (!words->group.empty()) (void)demo_group_limit(words->group);
    return run_outside(*words);
  };
}

}  // namespace lowtide::cli
