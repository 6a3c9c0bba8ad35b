#include "report/page.h"

#include "core/quote.h"
#include "lowtide/bytes.h"
#include "meter/sums.h"
#include "report/assets.h"
#include "report/chart.h"
#include "report/markup.h"
#include "report/report.h"
#include "verdict/summary.h"
#include "verdict/verdict.h"

namespace lowtide {
namespace {

constexpr std::size_t kScriptPoints = 700;  // an hour with ten files stays under 500 KB
constexpr std::size_t kStaticPoints = 240;  // more would not be visible in 870 units of width
constexpr std::size_t kTitleLetters = 200;

std::string section(const char* id, const char* title, const std::string& body) {
  if (body.empty()) return "";
  return std::string("<section aria-labelledby=\"") + id + "\">\n<h2 id=\"" + id + "\">" + title +
         "</h2>\n" + body + "</section>\n";
}

std::string figure(const Trace& trace, const Series& series) {
  constexpr const char* kToolbar =
      "<div class=\"toolbar\" hidden>\n"
      "<fieldset id=\"views\"><legend>show</legend>"
      "<label><input type=\"radio\" name=\"view\" value=\"tree\" checked> by kind</label>"
      "<label><input type=\"radio\" name=\"view\" value=\"processes\"> by process</label>"
      "<label><input type=\"radio\" name=\"view\" value=\"root\"> first process</label>"
      "</fieldset>\n"
      "<div class=\"zoom\"><button type=\"button\" id=\"in\" aria-label=\"zoom in\">+</button>"
      "<button type=\"button\" id=\"out\" aria-label=\"zoom out\">\u2212</button>"
      "<button type=\"button\" id=\"all\">whole run</button></div>\n"
      "<p class=\"hint\">Drag to zoom. Keys: \u2190 \u2192 move, + \u2212 zoom, 0 shows the whole "
      "run.</p>\n"
      "</div>\n";
  return std::string("<figure aria-label=\"memory over time\">\n") + kToolbar +
         "<div class=\"stage\" id=\"stage\">\n" +
         draw_chart(series, trace.marks, "Memory of " + command_of(trace, kTitleLetters),
                    picture_in_words(trace)) +
         "<div class=\"tip\" id=\"tip\" hidden></div>\n</div>\n" + page_legend(legend_of(series)) +
         "<p class=\"unseen\" id=\"told\" aria-live=\"polite\"></p>\n</figure>\n";
}

}  // namespace

std::string command_of(const Trace& trace, std::size_t most) {
  std::string command;
  for (const std::string& word : trace.command)
    command += (command.empty() ? "" : " ") + shown(word);
  return command.empty() ? "process " + std::to_string(trace.root_pid) : short_text(command, most);
}

std::string picture_in_words(const Trace& trace) {
  const Peak peak = peak_of(trace);
  const auto told = [](const std::optional<std::uint64_t>& bytes) {
    return bytes ? format_bytes(*bytes) : std::string("unknown");
  };
  return "Resident memory over " + time_text(seconds_of(trace)) + ": peak " + told(peak.rss) +
         ", with heap peaking at " + told(peak.anon) + " and mapped files at " + told(peak.file) +
         ". " + judge(trace).headline;
}

std::string page_top(const std::string& title, std::initializer_list<std::string_view> styles) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>" +
      escaped(title) + "</title>\n<style>\n";
  for (const std::string_view style : styles) out += style;
  return out + "</style>\n</head>\n<body>\n";
}

std::string html_report(const Trace& trace) {
  std::string out =
      page_top("Memory of " + command_of(trace, kTitleLetters), {kChartCss, kPageCss}) +
      page_head(trace) + "<main>\n";
  const Verdict verdict = judge(trace);
  out += page_verdict(verdict) + figure(trace, series_of(trace, kStaticPoints));
  out += "<div class=\"pair\">\n" + section("levels", "Start, peak, end", page_levels(trace)) +
         section("evidence", "Evidence", page_evidence(verdict)) + "</div>\n";
  out += section("processes", "Processes", page_processes(trace));
  out += section("files", "Files", page_files(trace));
  out += section("marks", "Marks", page_marks(trace));
  out += section("cost", "Cost of the measurement", page_cost(trace));
  out += page_words() + "</main>\n<script type=\"application/json\" id=\"data\">" +
         page_data(trace, series_of(trace, kScriptPoints)) + "</script>\n<script>\n";
  out += kChartJs;
  out += kPageJs;
  return out + "</script>\n</body>\n</html>\n";
}

}  // namespace lowtide
