#include <algorithm>

#include "report/assets.h"
#include "report/chart.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/report.h"
#include "verdict/verdict.h"

namespace lowtide {
namespace {

constexpr std::size_t kPoints = 400;
constexpr double kChartHeight = 520, kLineHeight = 20;
constexpr std::size_t kLettersOfLine = 98;

std::vector<std::string> wrapped(const std::string& words) {
  std::vector<std::string> lines{""};
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    const std::string word = words.substr(at, end - at);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > kLettersOfLine) {
      lines.emplace_back();
    }
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    at = end + 1;
  }
  return lines;
}

}  // namespace

double svg_legend(const std::vector<LegendEntry>& entries, double width, double top,
                  std::string& out) {
  const std::size_t rows = (entries.size() + 1) / 2;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double x = i < rows ? 76 : width / 2 + 30;
    const double y = top + kLineHeight * static_cast<double>(i % rows);
    out += "<g transform=\"translate(" + coordinate(x) + " " + coordinate(y) + ")\">" +
           entries[i].sign + "</g>\n" + svg_text("legend", x + 30, y + 11, entries[i].title);
  }
  return kLineHeight * static_cast<double>(rows);
}

std::string svg_file(double width, double height, const std::string& body) {
  const std::string size = coordinate(width) + "\" height=\"" + coordinate(height);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lt-chart\" viewBox=\"0 0 " +
                    coordinate(width) + " " + coordinate(height) + "\" width=\"" + size +
                    "\">\n<style>\n";
  out += kChartCss;
  return out + "</style>\n<rect class=\"ground\" width=\"" + size + "\"/>\n" + body + "</svg>\n";
}

std::string svg_report(const Trace& trace, const PictureOptions& options) {
  if (options.small) {
    return svg_file(kSmallChartWidth, kSmallChartHeight,
                    draw_chart(series_of(trace, kSmallChartPoints, FileSplit::data), {},
                               "Memory over time", picture_in_words(trace), options));
  }
  const Series series = series_of(trace, kPoints);
  std::string body;
  double y = 26;
  for (const std::string& line : wrapped(judge(trace).headline)) {
    body += svg_text("headline", 16, y, line);
    y += kLineHeight;
  }
  body += "<g transform=\"translate(0 " + coordinate(y) + ")\">\n" +
          draw_chart(series, trace.marks, "Memory over time", picture_in_words(trace), options) +
          "</g>\n";
  y += kChartHeight + 8;
  y += svg_legend(legend_of(series), kChartWidth, y, body) + 12;
  return svg_file(kChartWidth, y, body);
}

}  // namespace lowtide
