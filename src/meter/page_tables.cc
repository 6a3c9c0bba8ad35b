#include <cmath>

#include "lowtide/bytes.h"
#include "meter/file_rows.h"
#include "meter/markup.h"
#include "meter/page.h"
#include "meter/sums.h"

namespace lowtide {
namespace {

constexpr std::size_t kMostMarkRows = 100;

using Bytes = std::optional<std::uint64_t>;

std::string bytes_cell(const std::string& key, const Bytes& bytes) {
  const std::string begin = "<td class=\"number";
  if (!bytes) return begin + " open\" data-key=\"" + key + "\">unknown</td>";
  return begin + "\" data-key=\"" + key + "\" data-bytes=\"" + std::to_string(*bytes) +
         "\" title=\"" + grouped(*bytes) + " bytes\">" + format_bytes(*bytes) + "</td>";
}

std::string growth_cell(const std::string& key, const std::optional<std::int64_t>& growth) {
  const std::string begin = "<td class=\"number";
  if (!growth) return begin + " open\" data-key=\"" + key + "\">unknown</td>";
  const bool down = *growth < 0;
  const std::uint64_t size =
      down ? 0 - static_cast<std::uint64_t>(*growth) : static_cast<std::uint64_t>(*growth);
  const std::string sign = size == 0 ? "" : down ? "\u2212" : "+";
  return begin + "\" data-key=\"" + key + "\" data-bytes=\"" + std::to_string(*growth) +
         "\" title=\"" + sign + grouped(size) + " bytes\">" + sign + format_bytes(size) + "</td>";
}

std::string peak_row(const char* name, const char* key, const Bytes& peak,
                     const std::optional<std::int64_t>* growth) {
  std::string row = std::string("<tr><th scope=\"row\">") + name + "</th>" +
                    bytes_cell(std::string("peak.") + key, peak);
  row += growth ? growth_cell(std::string("growth.") + key, *growth) : "<td></td>";
  return row + "</tr>\n";
}

std::string percent(double part) {
  const std::string text = coordinate(part * 100);
  return (part > 0 && text == "0" ? "under 0.1" : text) + " %";
}

}  // namespace

std::string page_peaks(const Trace& trace) {
  const Peak peak = peak_of(trace);
  const Growth growth = growth_of(trace);
  return "<table>\n<thead><tr><th scope=\"col\">all processes</th><th scope=\"col\" "
         "class=\"number\">peak</th><th scope=\"col\" class=\"number\">growth after the "
         "start-up</th></tr></thead>\n<tbody>\n" +
         peak_row("resident (RSS)", "rss", peak.rss, &growth.rss) +
         peak_row("heap", "anon", peak.anon, &growth.anon) +
         peak_row("mapped files", "file", peak.file, &growth.file) +
         peak_row("shared", "shmem", peak.shmem, &growth.shmem) +
         peak_row("page tables", "page_tables", peak.page_tables, &growth.page_tables) +
         peak_row("page cache of the files", "page_cache", peak.page_cache, &growth.page_cache) +
         peak_row("memory group (cgroup)", "group_usage", peak.group_usage, nullptr) +
         "</tbody>\n</table>\n";
}

std::string page_files(const Trace& trace) {
  const std::vector<FileRow> rows = file_rows(trace);
  if (rows.empty()) return "<p>No mapped file was seen.</p>\n";
  std::string out =
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-labelledby=\"files\">\n<table "
      "id=\"file-table\">\n<thead><tr><th scope=\"col\">file</th><th scope=\"col\" "
      "class=\"number\">size</th><th scope=\"col\" class=\"number\">peak mapped</th><th "
      "scope=\"col\" class=\"number\">peak in page cache</th><th scope=\"col\" "
      "class=\"number\">mapped at the end</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < rows.size() && i < kMostFileRows; ++i) {
    const FileRow& row = rows[i];
    const std::string key = "files." + std::to_string(i) + ".";
    out += "<tr><th scope=\"row\" class=\"path\">" + escaped(row.path) +
           (row.deleted ? " <small>(deleted)</small>" : "") + "</th>" +
           bytes_cell(key + "size", row.size) + bytes_cell(key + "peak_mapped", row.peak_mapped) +
           bytes_cell(key + "peak_cached", row.peak_cached) +
           bytes_cell(key + "mapped_now", row.mapped_now) + "</tr>\n";
  }
  out += "</tbody>\n</table>\n</div>\n";
  if (rows.size() > kMostFileRows) {
    out += "<p>" + grouped(rows.size() - kMostFileRows) +
           " smaller ones are left out here; the JSON report has them all.</p>\n";
  }
  return out;
}

std::string page_marks(const Trace& trace) {
  if (trace.marks.empty()) return "";
  std::string out =
      "<div class=\"long\" tabindex=\"0\" role=\"region\" aria-labelledby=\"marks\">\n"
      "<table>\n<thead><tr><th scope=\"col\">mark</th><th scope=\"col\" "
      "class=\"number\">at</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < trace.marks.size() && i < kMostMarkRows; ++i) {
    out += "<tr><th scope=\"row\">" + escaped(short_text(trace.marks[i].text, 80)) +
           "</th><td class=\"number\">" + time_text(trace.marks[i].seconds) + "</td></tr>\n";
  }
  out += "</tbody>\n</table>\n</div>\n";
  if (trace.marks.size() > kMostMarkRows) {
    out += "<p>And " + grouped(trace.marks.size() - kMostMarkRows) + " more.</p>\n";
  }
  return out;
}

std::string page_cost(const Trace& trace) {
  if (!trace.ending) {
    return "<p>Unknown: the trace has no end, because the profiler was stopped from outside or "
           "still runs.</p>\n";
  }
  const double cost = trace.ending->cost_cpu_seconds, run = seconds_of(trace);
  std::string out = "<p>" + grouped(trace.readings.size()) + " readings took " + time_text(cost) +
                    " of processor time";
  if (run > 0) out += ": " + percent(cost / run) + " of one core";
  return out + ".</p>\n";
}

}  // namespace lowtide
