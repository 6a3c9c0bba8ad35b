#include "lowtide/command/bench.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "failure.h"
#include "files.h"
#include "lowtide/bytes.h"
#include "lowtide/command/json.h"
#include "lowtide/command/terminal.h"
#include "stop.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

struct BenchWords {
  std::string memory, row_bytes, batch, seconds;
  bool warm = false;
};

std::string rate_of(const std::optional<double>& rate) {
  if (!rate) return "-";
  return grouped(static_cast<std::uint64_t>(std::llround(*rate)));
}

// In millions of bytes per second, the unit that disk vendors use.
std::string megabytes_of(const std::optional<double>& rate) {
  if (!rate) return "-";
  return format_fixed(*rate / 1e6, *rate < 1e8 ? 1 : 0);
}

std::string share_of(const std::optional<double>& percent) {
  if (!percent) return "-";
  return format_fixed(*percent, 0) + " %";
}

std::string bytes_of(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(*bytes) : "unknown";
}

std::string head_of(const BenchReport& report) {
  Fields fields;
  fields.add("format", report.format + ", " + format_bytes(report.bytes));
  fields.add("samples", grouped(report.samples) + " " + report.unit + "s of " +
                            grouped(report.sample_bytes) + " bytes");
  fields.add("memory",
             format_bytes(report.memory_bytes) + ", batches of " + grouped(report.batch_size));
  fields.add("cached", report.cached_before_bytes
                           ? bytes_of(report.cached_before_bytes) + " before, " +
                                 bytes_of(report.cached_after_bytes) + " after"
                           : "unknown: " + report.cached_unknown);
  if (report.hot_bytes > 0) {
    fields.add("hot", "measured on " + format_bytes(report.hot_bytes) + " of it");
  }
  return paint(shown(report.path), Tone::bold) + "\n" + fields.text();
}

std::string table_of(const BenchReport& report) {
  using enum Table::Align;
  Table table({{"order"},
               {"cache"},
               {"engine"},
               {report.unit + "s/s", right},
               {"MB/s", right},
               {"of the device", right}});
  for (const BenchCell& cell : report.cells) {
    table.add_row({cell.pattern, cell.state, cell.engine, rate_of(cell.samples_per_second),
                   megabytes_of(cell.bytes_per_second), share_of(cell.percent_of_device)});
  }
  return table.text();
}

// Indented from the second line on.
std::string paragraph(const std::string& text) {
  constexpr std::size_t kIndent = 2;
  const std::size_t columns = output().columns;
  return wrapped(shown(text), columns > kIndent ? columns - kIndent : 0, kIndent) + "\n";
}

// Each reason once, with the cells that it applies to.
std::string reasons_of(const BenchReport& report) {
  std::vector<std::string> order;
  std::map<std::string, std::string> cells;
  for (const BenchCell& cell : report.cells) {
    if (cell.why_not.empty()) continue;
    std::string& who = cells[cell.why_not];
    if (who.empty()) order.push_back(cell.why_not);
    const std::string name = cell.state + " " + cell.engine;
    if (who.find(name) == std::string::npos) who += (who.empty() ? "" : ", ") + name;
  }
  std::string text;
  for (const std::string& why : order) {
    text += paragraph("not measured: " + cells[why] + ": " + why);
  }
  for (const std::string& note : report.notes) {
    text += paragraph("note: " + note);
  }
  return text;
}

std::string text_of(const BenchReport& report) {
  std::string text = head_of(report);
  if (!report.too_small.empty()) text += paint(paragraph(report.too_small), Tone::warning);
  return text + "\n" + table_of(report) + reasons_of(report);
}

// null if there is nothing to report
std::optional<std::string> told(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

void write_cell(JsonWriter* json, const BenchCell& cell) {
  json->begin_object()
      .field("pattern", cell.pattern)
      .field("state", cell.state)
      .field("engine", cell.engine)
      .field("how", cell.how)
      .field("why_not", told(cell.why_not))
      .field("seconds", cell.seconds)
      .field("samples", cell.samples)
      .field("bytes", cell.bytes)
      .field("bytes_read", cell.bytes_read)
      .field("reads", cell.reads)
      .field("samples_per_second", cell.samples_per_second)
      .field("bytes_per_second", cell.bytes_per_second)
      .field("percent_of_device", cell.percent_of_device)
      .end_object();
}

std::string json_of(const BenchReport& report) {
  JsonWriter json;
  json.begin_object()
      .field("path", report.path)
      .field("bytes", report.bytes)
      .field("format", report.format)
      .field("unit", report.unit)
      .field("sample_bytes", report.sample_bytes)
      .field("samples", report.samples)
      .field("memory", report.memory_bytes)
      .field("batch", report.batch_size)
      .field("seconds", report.seconds)
      .field("why_no_uring", told(report.why_no_uring))
      .field("cached_before", report.cached_before_bytes)
      .field("cached_after", report.cached_after_bytes)
      .field("cached_unknown", told(report.cached_unknown))
      .field("hot_first", report.hot_first_bytes)
      .field("hot_bytes", report.hot_bytes);
  json.key("cells").begin_array();
  for (const BenchCell& cell : report.cells) write_cell(&json, cell);
  json.end_array()
      .field("notes", report.notes)
      .field("too_small", told(report.too_small))
      .field("stopped", report.stopped)
      .end_object();
  return json.text() + "\n";
}

BenchOptions bench_options(const FileWords& file, const BenchWords& words) {
  BenchOptions options;
  options.file = info_options(file);
  if (!words.memory.empty()) options.memory_bytes = parse_size(words.memory, "--memory");
  if (!words.row_bytes.empty()) options.row_bytes = parse_size(words.row_bytes, "--row-bytes");
  if (!words.batch.empty()) {
    options.batch_size = parse_count(words.batch, "--batch");
    if (options.batch_size == 0)
      throw std::invalid_argument("--batch: expected at least 1, found 0");
  }
  if (!words.seconds.empty()) options.seconds = parse_seconds(words.seconds, "--seconds");
  options.warm = words.warm;
  return options;
}

}  // namespace

Action add_bench(CLI::App& app) {
  const auto file = add_file_words(app, false);
  const auto words = std::make_shared<BenchWords>();
  app.add_option("--memory", words->memory, "The memory budget, such as 64MiB")->type_name("SIZE");
  app.add_option("--batch", words->batch, "Rows or windows per batch (default: 4096 or 12)")
      ->type_name("N");
  app.add_option("--row-bytes", words->row_bytes, "Read rows of this size, whatever the format")
      ->type_name("SIZE");
  app.add_option("--seconds", words->seconds,
                 "Seconds per measurement; there are up to 12 (default: 1)")
      ->type_name("S");
  app.add_flag("--warm", words->warm,
               "Load up to 256 MiB into the page cache for the hot measurements, and afterwards "
               "evict what was not cached before");
  return [file, words](const Call&) {
    BenchOptions options = bench_options(*file, *words);
    const StopSignals stop;
    options.stop = [&] { return stop.came(); };
    BenchReport report;
    {
      Progress progress("bench");
      options.progress = [&](const std::string& what, std::uint64_t done, std::uint64_t all) {
        progress.show_step(what, done, all);
      };
      report = bench(file->files.front(), options);
    }
    print(file->json ? json_of(report) : text_of(report));
    if (!report.stopped) return kDone;
    const auto measured = std::ranges::count(report.cells, std::string(), &BenchCell::why_not);
    tell("bench", "stopped after " + std::to_string(measured) + " of " +
                      std::to_string(report.cells.size()) + " measurements");
    return stop.exit_code();
  };
}

}  // namespace lowtide::cli
