#include <algorithm>
#include <cmath>
#include <iterator>

#include "lowtide/bytes.h"
#include "lowtide/command/terminal.h"
#include "meter/sums.h"
#include "report/markup.h"
#include "report/page.h"
#include "verdict/evidence.h"
#include "verdict/file_rows.h"
#include "verdict/lives.h"
#include "verdict/summary.h"

namespace lowtide {
namespace {

constexpr std::size_t kMostFileRows = 60, kMostMarkRows = 100, kMostProcessRows = 30;

using Bytes = std::optional<std::uint64_t>;

// `key` locates the number in the JSON report; empty if it is not there.
std::string bytes_cell(const std::string& key, const Bytes& bytes) {
  const std::string place = key.empty() ? "\"" : "\" data-key=\"" + key + "\"";
  if (!bytes) return "<td class=\"number open" + place + ">unknown</td>";
  return "<td class=\"number" + place + " data-bytes=\"" + std::to_string(*bytes) + "\" title=\"" +
         grouped(*bytes) + " bytes\">" + format_bytes(*bytes) + "</td>";
}

std::string level_row(const char* name, const char* key, const Bytes& start, const Bytes& peak,
                      const Bytes& end) {
  return std::string("<tr><th scope=\"row\">") + name + "</th>" +
         bytes_cell(std::string("start.") + key, start) +
         bytes_cell(std::string("peak.") + key, peak) + bytes_cell(std::string("end.") + key, end) +
         "</tr>\n";
}

// The cells of a file, except for its name.
std::string file_cells(const std::string& key, const FileRow& row) {
  return bytes_cell(key + "size", row.size) + bytes_cell(key + "peak_mapped", row.peak_mapped) +
         bytes_cell(key + "peak_cached", row.peak_cached) +
         bytes_cell(key + "mapped_now", row.mapped_now) + "</tr>\n";
}

// One row that unfolds into names and sizes.
std::string libraries_cells(const Trace& trace, const std::vector<FileRow>& libraries) {
  std::string out = "<tr class=\"folded\"><th scope=\"row\"><details><summary>" +
                    grouped(libraries.size()) +
                    (libraries.size() == 1 ? " library" : " libraries") + "</summary>\n<ul>\n";
  for (std::size_t i = 0; i < libraries.size() && i < kMostFileRows; ++i) {
    const FileRow& one = libraries[i];
    out += "<li><span class=\"path\">" + escaped(one.path) + "</span> <span class=\"number\">" +
           (one.peak_mapped ? format_bytes(*one.peak_mapped) : "unknown") + "</span></li>\n";
  }
  if (libraries.size() > kMostFileRows) {
    out += "<li>and " + grouped(libraries.size() - kMostFileRows) + " smaller ones</li>\n";
  }
  return out + "</ul></details></th>" + file_cells("libraries.", libraries_row(trace));
}

std::string process_row(const Life& life) {
  const bool known = life.heap.known();
  const auto bytes = [&](std::uint64_t value) { return known ? Bytes(value) : Bytes(); };
  return "<tr><th scope=\"row\" class=\"path\">" + escaped(process_text(life.name, life.pid)) +
         (life.leaks ? " <strong class=\"leaks\">leaks " + rate_text(*life.heap_trend) + "</strong>"
                     : "") +
         "</th><td class=\"number\">" + time_text(life.begin_s) + " \u2013 " +
         time_text(life.end_s) + "</td>" + bytes_cell("", bytes(life.heap.first)) +
         bytes_cell("", bytes(life.heap.peak)) + bytes_cell("", bytes(life.heap.last)) + "</tr>\n";
}

std::string percent(double part) {
  const std::string text = coordinate(part * 100);
  return (part > 0 && text == "0" ? "under 0.1" : text) + " %";
}

}  // namespace

std::string page_levels(const Trace& trace) {
  const Level start = start_of(trace), peak = peak_of(trace), end = end_of(trace);
  const auto row = [&](const char* name, const char* key, Bytes Level::*kind) {
    return level_row(name, key, start.*kind, peak.*kind, end.*kind);
  };
  return "<table class=\"levels\">\n<thead><tr><th scope=\"col\">all processes</th><th "
         "scope=\"col\" class=\"number\">start</th><th scope=\"col\" "
         "class=\"number\">peak</th><th scope=\"col\" "
         "class=\"number\">end</th></tr></thead>\n<tbody>\n" +
         row("resident (RSS)", "rss", &Level::rss) + row("heap", "anon", &Level::anon) +
         row("mapped files", "file", &Level::file) + row("shared", "shmem", &Level::shmem) +
         row("page tables", "page_tables", &Level::page_tables) +
         row("page cache of the files", "page_cache", &Level::page_cache) +
         row("memory group (cgroup)", "group_usage", &Level::group_usage) +
         "</tbody>\n</table>\n<p class=\"note\">The start is taken after the first tenth of the "
         "run, the end before the processes exit.</p>\n";
}

std::string page_processes(const Trace& trace) {
  std::vector<Life> lives = lives_of(trace);
  if (lives.size() < 2) return "";
  std::ranges::stable_sort(lives, [](const Life& a, const Life& b) {
    return a.leaks != b.leaks ? a.leaks : a.heap.peak > b.heap.peak;
  });
  std::string out =
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
      "aria-labelledby=\"processes\">\n<table class=\"cards\" "
      "id=\"process-table\">\n<thead><tr><th "
      "scope=\"col\">process</th><th scope=\"col\" class=\"number\">seen</th><th scope=\"col\" "
      "class=\"number\">heap at its start</th><th scope=\"col\" class=\"number\">peak</th><th "
      "scope=\"col\" class=\"number\">end</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < lives.size() && i < kMostProcessRows; ++i) {
    out += process_row(lives[i]);
  }
  out += "</tbody>\n</table>\n</div>\n";
  if (lives.size() > kMostProcessRows) {
    out += "<p>" + grouped(lives.size() - kMostProcessRows) +
           " smaller ones are not shown here; the JSON report lists them all.</p>\n";
  }
  return out;
}

std::string page_files(const Trace& trace) {
  std::vector<FileRow> rows = file_rows(trace);
  if (rows.empty()) return "<p>No mapped files were seen.</p>\n";
  std::vector<FileRow> libraries;
  std::ranges::copy_if(rows, std::back_inserter(libraries), &FileRow::library);
  std::erase_if(rows, [](const FileRow& row) { return row.library; });
  std::string out =
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-labelledby=\"files\">\n<table "
      "class=\"cards\" id=\"file-table\">\n<thead><tr><th scope=\"col\">file</th><th "
      "scope=\"col\" class=\"number\">size</th><th scope=\"col\" class=\"number\">peak "
      "mapped</th><th scope=\"col\" class=\"number\">peak in page cache</th><th scope=\"col\" "
      "class=\"number\">mapped at the end</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < rows.size() && i < kMostFileRows; ++i) {
    out += "<tr><th scope=\"row\" class=\"path\">" + escaped(rows[i].path) +
           (rows[i].deleted ? " <small>(deleted)</small>" : "") + "</th>" +
           file_cells("files." + std::to_string(i) + ".", rows[i]);
  }
  if (!libraries.empty()) out += libraries_cells(trace, libraries);
  out += "</tbody>\n</table>\n</div>\n";
  if (rows.size() > kMostFileRows) {
    out += "<p>" + grouped(rows.size() - kMostFileRows) +
           " smaller ones are not shown here; the JSON report lists them all.</p>\n";
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
    return "<p>Unknown: the trace has no end, because the profiler was killed or is still "
           "running.</p>\n";
  }
  const double cost = trace.ending->cost_cpu_seconds, run = seconds_of(trace);
  std::string out = "<p>" + grouped(trace.readings.size()) + " readings took " + time_text(cost) +
                    " of processor time";
  if (run > 0) out += ": " + percent(cost / run) + " of one core";
  return out + ".</p>\n";
}

}  // namespace lowtide
