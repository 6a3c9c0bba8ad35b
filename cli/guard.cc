#include "lowtide/guard.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "failure.h"
#include "lowtide/bytes.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

struct GuardWords {
  std::string limit;
  std::string cache = "keep";
  bool no_children = false;
  bool tree = false;
};

std::string count_of(std::uint64_t count, const std::string& one, const std::string& many) {
  return count_text(count) + " " + (count == 1 ? one : many);
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
  if (end.not_covered.empty()) return text + "nothing";
  for (std::size_t i = 0; i < end.not_covered.size(); ++i) {
    text += (i == 0 ? "" : "; ") + end.not_covered[i];
  }
  return text;
}

GuardOptions options_of(const GuardWords& words, const Call& call) {
  GuardOptions options;
  options.command = call.command;
  options.limit_bytes = parse_bytes(words.limit);
  options.drop_cache = words.cache == "drop";
  options.children = !words.no_children;
  options.tree = words.tree;
  return options;
}

}  // namespace

Run add_guard(CLI::App& app) {
  const auto words = std::make_shared<GuardWords>();
  app.add_option("--limit", words->limit,
                 "Mapped pages of files that each process may hold: 512MiB")
      ->required()
      ->type_name("SIZE");
  app.add_option("--cache", words->cache,
                 "drop: the page cache forgets what was let go; keep (the default): it stays")
      ->check(CLI::IsMember({"keep", "drop"}))
      ->type_name("keep|drop");
  app.add_flag("--no-children", words->no_children, "Only the program itself, not what it starts");
  app.add_flag("--tree", words->tree,
               "The limit is for the sum over all processes; a page that two of them map counts "
               "twice");
  return [words](const Call& call) {
    const GuardEnd end = guard(options_of(*words, call));
    tell("guard", end.error.empty() ? summary_of(end, words->tree) : end.error);
    return end.exit_code;
  };
}

}  // namespace lowtide::cli
