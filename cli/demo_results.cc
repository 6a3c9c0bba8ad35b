#include "demo_results.h"

#include <algorithm>
#include <cmath>

#include "lowtide/bytes.h"
#include "lowtide/command/json.h"
#include "lowtide/command/terminal.h"
#include "terminal.h"

namespace lowtide::cli {
namespace {

using Results = std::vector<DemoResult>;

const std::vector<std::string> kColumns{"rows/s",         "peak heap",
                                        "peak mapped",    "page cache growth",
                                        "read from disk", "read per byte delivered"};

Peak peak_of(const DemoResult& result) {
  return result.recording ? result.recording->peak() : Peak{};
}

const DemoResult& result_of(const Results& results, const char* word) {
  return *std::ranges::find(results, word, [](const DemoResult& one) { return one.method.word; });
}

std::optional<double> rate_of(const DemoResult& result) {
  if (!result.recording || result.rate.seconds <= 0) return std::nullopt;
  return static_cast<double>(result.rate.rows) / result.rate.seconds;
}

std::optional<double> ratio(std::optional<std::uint64_t> part, std::uint64_t whole) {
  if (!part || whole == 0) return std::nullopt;
  return static_cast<double>(*part) / static_cast<double>(whole);
}
// Bytes read from the disk per byte delivered.
std::optional<double> disk_per_byte(const DemoResult& result) {
  return ratio(result.rate.disk_bytes, result.rate.rows * kDemoRowBytes);
}
// Bytes requested from the operating system per byte delivered; known for Lowtide's methods only.
std::optional<double> read_per_byte(const DemoResult& result) {
  return ratio(result.rate.bytes_read, result.rate.bytes_asked);
}

std::string rows_text(const DemoResult& result) {
  const std::optional<double> rate = rate_of(result);
  return rate ? grouped(static_cast<std::uint64_t>(std::llround(*rate))) : "unknown";
}

std::string times_text(std::optional<double> ratio) {
  return ratio ? format_fixed(*ratio, *ratio < 100 ? 1 : 0) : "unknown";
}

std::vector<std::string> cells_of(const DemoResult& result) {
  const Peak peak = peak_of(result);
  return {rows_text(result),
          bytes_text(peak.anon),
          bytes_text(peak.file),
          bytes_text(result.cache_grown_bytes),
          bytes_text(result.rate.disk_bytes),
          times_text(disk_per_byte(result))};
}

std::string table_of(const Results& results) {
  std::vector<Table::Column> columns{{"method"}};
  for (const std::string& name : kColumns) columns.push_back({name, Table::Align::right});
  Table table(std::move(columns));
  for (const DemoResult& result : results) {
    std::vector<std::string> cells = cells_of(result);
    cells.insert(cells.begin(), result.method.title);
    table.add_row(std::move(cells));
  }
  return table.text();
}

std::string title_of_free(const DemoResults& results) {
  return "The file (" + format_bytes(results.file_bytes) + ") may fill the page cache";
}
std::string title_of_limited(const DemoResults& results) {
  return "Everything limited to " + format_bytes(results.limit_bytes);
}

std::vector<std::string> sentences_of(const DemoResults& results) {
  const Results& free = results.free;
  const DemoResult &ours = result_of(free, "lowtide"), &past = result_of(free, "lowtide-drop");
  const Peak held = peak_of(ours);
  return {"Read in shuffled order, the map grew to " +
              bytes_text(peak_of(result_of(free, "mmap")).file) +
              " of mapped file pages. The usual fixes left " +
              bytes_text(result_of(free, "mmap-again").cache_grown_bytes) + " and " +
              bytes_text(result_of(free, "mmap-dontneed").cache_grown_bytes) +
              " in the page cache. Lowtide held " + bytes_text(held.anon) + " of heap and " +
              bytes_text(held.file) +
              " of mapped file pages. By default it leaves a file that is small compared with "
              "memory in the page cache (" +
              bytes_text(ours.cache_grown_bytes) + "); with cache drop it left " +
              bytes_text(past.cache_grown_bytes) + " there.",
          results.limited.empty()
              ? "A map is fast only while the whole file fits into memory. Here nothing was "
                "limited, so its rate is that of a cached file."
              : "A map is fast only while the whole file fits into memory: with " +
                    format_bytes(results.limit_bytes) + " for everything, the map read " +
                    rows_text(result_of(results.limited, "mmap")) +
                    " rows per second and Lowtide " +
                    rows_text(result_of(results.limited, "lowtide")) + ".",
          "Lowtide reads rows that are close on disk with one request, including the unused bytes "
          "between them: it requested " +
              times_text(read_per_byte(past)) +
              " bytes per byte delivered. The option gap limits that, at the price of more "
              "requests."};
}

void write_methods(JsonWriter& json, const Results& results) {
  json.begin_array();
  for (const DemoResult& result : results) {
    const Peak peak = peak_of(result);
    json.begin_object().field("method", result.method.word).field("exit", result.exit_code);
    json.field("rows", result.rate.rows).field("seconds", result.rate.seconds);
    json.field("rows_per_second", rate_of(result));
    json.field("read_per_byte", read_per_byte(result)).field("disk", result.rate.disk_bytes);
    json.key("peak").begin_object().field("rss", peak.rss).field("anon", peak.anon);
    json.field("file", peak.file).field("page_tables", peak.page_tables).end_object();
    json.field("page_cache_grown", result.cache_grown_bytes).key("verdict");
    result.recording ? json.value(verdict_word(result.recording->verdict().kind)) : json.null();
    json.end_object();
  }
  json.end_array();
}

ComparedSection section_of(const std::string& title, const std::string& note,
                           const Results& results) {
  ComparedSection section{title, note, {}};
  for (const DemoResult& result : results) {
    section.entries.push_back(
        {.title = result.method.title,
         .note = result.recording ? rows_text(result) + " rows/s" : "not measured: it failed",
         .ours = result.method.word.starts_with("lowtide"),
         .recording = result.recording,
         .cells = cells_of(result)});
  }
  return section;
}

}  // namespace

std::string demo_text(const DemoResults& results) {
  std::string out;
  if (!results.limited.empty()) out += title_of_free(results) + "\n";
  out += table_of(results.free) + "\n";
  if (!results.limited.empty()) {
    out += title_of_limited(results) + "\n" + table_of(results.limited) + "\n";
  }
  for (const std::string& words : sentences_of(results)) {
    out += wrapped(words, output().columns, 0) + "\n";
  }
  return out;
}

std::string demo_json(const DemoResults& results) {
  JsonWriter json;
  json.begin_object().field("bytes", results.file_bytes);
  json.field("rows", results.file_bytes / kDemoRowBytes).field("row_bytes", kDemoRowBytes);
  json.field("memory", kDemoMemoryBytes).key("methods");
  write_methods(json, results.free);
  if (!results.limited.empty()) {
    json.key("group").begin_object().field("limit", results.limit_bytes).key("methods");
    write_methods(json, results.limited);
    json.end_object();
  }
  json.end_object();
  return json.text() + "\n";
}

Comparison demo_comparison(const DemoResults& results) {
  Comparison out{"Where the memory goes when a matrix is read in shuffled order",
                 sentences_of(results),
                 kColumns,
                 {}};
  out.sections.push_back(section_of(
      title_of_free(results),
      "Two epochs in shuffled batches of 4096 rows, starting with an evicted file, at most " +
          format_fixed(results.seconds, 1) + " seconds per method. All pictures have one scale.",
      results.free));
  if (!results.limited.empty()) {
    out.sections.push_back(section_of(
        title_of_limited(results), "The same work in a memory group (cgroup).", results.limited));
  }
  return out;
}

}  // namespace lowtide::cli
