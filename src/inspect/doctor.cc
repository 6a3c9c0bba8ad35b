#include "inspect/doctor.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "http/local_path.h"
#include "inspect/info.h"
#include "lowtide/array.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "os/paths.h"
#include "os/ring.h"

namespace lowtide {
namespace {

std::uint64_t budget_of(const DoctorOptions& options) {
  return options.memory_bytes != 0 ? options.memory_bytes : default_memory_bytes(SystemRoot{});
}

// Without a file, only the rules can be reported.
Fact choice_of_rules(const DoctorOptions& options) {
  const std::string no_ring = Ring::probe();
  Fact fact{"choice", FactState::good, "", "", ""};
  fact.value = "engine memory for data of up to " + format_bytes(budget_of(options)) +
               "; for larger data, pread" +
               (no_ring.empty() ? " for cached bytes and uring for the rest" : "");
  fact.detail =
      "data that fits the budget is read once and held; otherwise cached bytes are copied out of "
      "the page cache and the rest is read from disk, " +
      std::string(no_ring.empty() ? "with 128 reads in flight" : "by up to 64 threads");
  fact.advice = "name a file to see what is chosen for it";
  if (!no_ring.empty()) fact.state = FactState::note;
  return fact;
}

Stats stats_of(const DoctorOptions& options) {
  const std::string& path = *options.path;
  const ReadOptions read{.memory_bytes = budget_of(options)};
  try {
    const OpenedFile opened = open_file({&path, 1}, true, {}, read);
    return std::visit([](const auto& open) { return open.stats(); }, opened);
  } catch (const FormatError&) {  // a file of unknown format
    return Array::open(path, {.dtype = "uint8", .read = read}).stats();
  }
}

std::string speed_advice(const Stats& stats, const std::string& no_ring) {
  if (stats.engine == "memory") return "";
  if (!no_ring.empty()) return "allow io_uring: without it, fewer reads are in flight";
  if (stats.cache == "drop" && stats.engine == "uring") {
    return "give Lowtide more memory: it then sorts and fetches more upcoming reads together";
  }
  return "";
}

const Fact* find_fact(const Facts& facts, std::string_view name) {
  const auto found = std::ranges::find(facts, name, &Fact::name);
  return found == facts.end() ? nullptr : &*found;
}

// What slows Lowtide most comes first. Read-ahead is not listed: it slows only maps.
std::string best_advice(const Facts& facts) {
  const Fact* const choice = find_fact(facts, "choice");
  const bool held = choice != nullptr && choice->value.starts_with("engine memory,");
  if (held) return "";  // read only once, so storage hardly matters
  constexpr const char* kOrder[] = {"io_uring", "file_system",  "direct_io",
                                    "device",   "memory_limit", "cachestat"};
  for (const char* const name : kOrder) {
    const Fact* const fact = find_fact(facts, name);
    const bool costs =
        fact != nullptr && (fact->state == FactState::bad || fact->state == FactState::note);
    if (costs && !fact->advice.empty()) return fact->advice;
  }
  // Without a path, the advice of choice is to name one.
  return find_fact(facts, "path") != nullptr && choice != nullptr ? choice->advice : "";
}

}  // namespace

const char* fact_state_word(FactState state) noexcept {
  switch (state) {
    case FactState::good:
      return "good";
    case FactState::note:
      return "note";
    case FactState::bad:
      return "bad";
    case FactState::unknown:
      break;
  }
  return "unknown";
}

Fact unknown_fact(std::string name, std::string detail, std::string advice) {
  return {std::move(name), FactState::unknown, "unknown", std::move(detail), std::move(advice)};
}

Fact choice_fact(const DoctorOptions& options) {
  if (!options.path || is_folder(*options.path)) return choice_of_rules(options);
  try {
    const Stats stats = stats_of(options);
    const std::string no_ring = Ring::probe();
    Fact fact{"choice", FactState::good, "engine " + stats.engine + ", cache " + stats.cache,
              stats.engine_reason + "; " + stats.cache_reason, speed_advice(stats, no_ring)};
    if (!no_ring.empty() && stats.engine != "memory") fact.state = FactState::note;
    return fact;
  } catch (const std::exception& error) {
    return unknown_fact("choice", error.what());
  }
}

Facts examine(const DoctorOptions& options, const SystemRoot& root) {
  if (options.path) require_local(*options.path, kExaminesLocal);
  Facts facts = {build_fact(options)};
  add_kernel_facts(root, &facts);
  add_memory_facts(options, root, &facts);
  if (options.path) add_path_facts(*options.path, root, &facts);
  facts.push_back(choice_fact(options));
  return facts;
}

Facts examine(const DoctorOptions& options) {
  return examine(options, SystemRoot{});
}

std::string conclusion_of(const std::vector<Fact>& facts) {
  const Fact* const choice = find_fact(facts, "choice");
  if (choice == nullptr) return "";
  const Fact* const path = find_fact(facts, "path");
  if (choice->state == FactState::unknown) {
    return "What Lowtide would use here is unknown: " + choice->detail + ".";
  }
  std::string text = "Lowtide will use " + choice->value;
  if (path != nullptr && path->detail != "a folder") text += ", for " + path->value;
  const std::string advice = best_advice(facts);
  return text + (advice.empty() ? ". Nothing found here would make it faster."
                                : ". To make it faster: " + advice + ".");
}

}  // namespace lowtide
