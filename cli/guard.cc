#include "lowtide/command/guard.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <stdexcept>
#include <string>

#include "failure.h"
#include "files.h"
#include "lowtide/bytes.h"
#include "lowtide/command/json.h"
#include "lowtide/command/terminal.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

struct GuardWords {
  std::string limit;
  std::string cache = "keep";
  bool no_children = false;
  bool tree = false;
  bool json = false;
};

std::string count_of(std::uint64_t count, const std::string& one, const std::string& many) {
  return grouped(count) + " " + (count == 1 ? one : many);
}

std::string summary_of(const GuardEnd& end, bool tree) {
  std::string text;
  if (end.maps == 0) {
    text = "no file of " + format_bytes(kSmallestGuardBytes) + " or more was mapped";
  } else {
    text = "peak " + format_bytes(end.peak_bytes) + " of mapped files" +
           (tree ? ", summed over the processes" : "") + " (limit " +
           format_bytes(end.limit_bytes) + "), " + count_of(end.trims, "trim", "trims") + " in " +
           count_of(end.processes, "process", "processes");
  }
  text += "; not covered: ";
  if (end.not_covered.empty()) text += "nothing";
  for (std::size_t i = 0; i < end.not_covered.size(); ++i) {
    text += (i == 0 ? "" : "; ") + end.not_covered[i];
  }
  return end.advice.empty() ? text : text + "; " + end.advice;
}

std::string json_of(const GuardEnd& end, const GuardOptions& options) {
  JsonWriter json;
  json.begin_object()
      .field("command", options.command)
      .field("exit", end.exit_code)
      .field("limit", end.limit_bytes)
      .field("tree", options.tree)
      .field("peak", end.peak_bytes)
      .field("trims", end.trims)
      .field("released", end.released_bytes)
      .field("maps", end.maps)
      .field("processes", end.processes)
      .field("not_covered", end.not_covered)
      .key("advice");
  end.advice.empty() ? json.null() : json.value(end.advice);
  json.key("error");
  end.error.empty() ? json.null() : json.value(end.error);
  json.end_object();
  return json.text() + "\n";
}

GuardOptions guard_options(const GuardWords& words, const Call& call) {
  GuardOptions options;
  options.command = call.command;
  options.limit_bytes = parse_size(words.limit, "--limit");
  options.drop_cache = words.cache == "drop";
  options.children = !words.no_children;
  options.tree = words.tree;
  return options;
}

}  // namespace

Action add_guard(CLI::App& app) {
  const auto words = std::make_shared<GuardWords>();
  app.add_option("--limit", words->limit,
                 "How much of its mapped files each process may keep resident, such as 512MiB")
      ->required()
      ->type_name("SIZE");
  app.add_option("--cache", words->cache,
                 "drop: also evict released pages from the page cache; keep (the default): leave "
                 "them there")
      ->type_name("keep|drop");
  app.add_flag("--no-children", words->no_children,
               "Limit only the program itself, not the processes it starts");
  app.add_flag("--tree", words->tree,
               "Apply the limit to the sum over all processes; a page mapped by two of them counts "
               "twice");
  app.add_flag("--json", words->json, "Print one JSON object as the last line of stdout");
  return [words](const Call& call) {
    if (call.command.empty()) {
      throw std::invalid_argument(
          "no program was given: write it after the options, as in lowtide guard "
          "--limit 512MiB python train.py");
    }
    if (words->cache != "keep" && words->cache != "drop") {
      throw std::invalid_argument("--cache: expected keep or drop, found \"" + words->cache + "\"");
    }
    const GuardOptions options = guard_options(*words, call);
    const GuardEnd end = guard(options);
    if (!end.error.empty()) tell("guard", end.error);
    if (words->json) {
      print(json_of(end, options));
    } else if (end.error.empty()) {
      tell("guard", summary_of(end, words->tree));
    }
    return end.exit_code;
  };
}

}  // namespace lowtide::cli
