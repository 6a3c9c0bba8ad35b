#include <algorithm>
#include <map>
#include <utility>

#include "meter/assets.h"
#include "meter/chart.h"
#include "meter/facts.h"
#include "meter/markup.h"
#include "meter/page.h"
#include "meter/report.h"

namespace lowtide {
namespace {

constexpr std::size_t kPoints = 400, kSmallPoints = 120;
constexpr double kWidth = 960, kChartHeight = 520, kLineHeight = 20;
constexpr std::size_t kLettersOfLine = 98;
constexpr const char* kLibraries = "libraries";

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

std::string text(const char* look, double x, double y, const std::string& words) {
  return std::string("<text class=\"") + look + "\" x=\"" + coordinate(x) + "\" y=\"" +
         coordinate(y) + "\">" + escaped(words) + "</text>\n";
}

// Two columns below the picture; returns the height that they take.
double add_legend(const Series& series, double top, std::string& out) {
  struct Entry {
    std::string sign, title;
  };
  std::vector<Entry> entries;
  const std::vector<int> looks = looks_of(series.tree);
  for (std::size_t i = looks.size(); i-- > 0;) {
    entries.push_back({"<rect width=\"22\" height=\"12\" fill=\"url(#lt-look-" +
                           std::to_string(looks[i]) + ")\"/>",
                       layer_title(series.tree.layers[i])});
  }
  entries.push_back({"<path class=\"cached\" d=\"M0 6H22\"/>", "page cache of the files"});
  entries.push_back({"<path class=\"limit\" d=\"M0 6H22\"/>", "limit of the memory group"});
  const std::size_t rows = (entries.size() + 1) / 2;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double x = i < rows ? 76 : 510;
    const double y = top + kLineHeight * static_cast<double>(i % rows);
    out += "<g transform=\"translate(" + coordinate(x) + " " + coordinate(y) + ")\">" +
           entries[i].sign + "</g>\n" + text("legend", x + 30, y + 10, entries[i].title);
  }
  return kLineHeight * static_cast<double>(rows);
}

std::string with_style(double width, double height, const std::string& body) {
  const std::string size = coordinate(width) + "\" height=\"" + coordinate(height);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lt-chart\" viewBox=\"0 0 " +
                    coordinate(width) + " " + coordinate(height) + "\" width=\"" + size +
                    "\">\n<style>\n";
  out += kChartCss;
  return out + "</style>\n<rect class=\"ground\" width=\"" + size + "\"/>\n" + body + "</svg>\n";
}

// The one file that the data is, or all of them.
std::string name_of(const std::map<std::string, std::uint64_t>& peaks) {
  std::string name = "mapped files";
  std::uint64_t largest = 0;
  double sum = 0;
  for (const auto& [path, peak] : peaks) {
    sum += static_cast<double>(peak);
    if (peak <= largest) continue;
    largest = peak;
    name = path;
  }
  return largest > 0 && static_cast<double>(largest) >= 0.9 * sum ? name : "mapped files";
}

// Two layers of files with the same looks in every picture. Files are looked at rarely, and the
// libraries hardly change: they are what is drawn on between two looks, the rest is data.
Series small_series(Trace trace) {
  std::map<std::string, std::uint64_t> data;
  for (Reading& reading : trace.readings) {
    if (!reading.files) continue;
    FileReading libraries;
    std::uint64_t mapped = 0;
    for (FileReading& file : *reading.files) {
      const std::uint64_t now = file.mapped.value.value_or(0);
      if (!is_library(file.path)) {
        data[file.path] = std::max(data[file.path], now);
      } else if (__builtin_add_overflow(mapped, now, &mapped)) {
        mapped = UINT64_MAX;
      }
      file.mapped = Figure::known(0);
    }
    std::erase_if(*reading.files, [](const FileReading& file) { return is_library(file.path); });
    libraries.path = kLibraries;
    libraries.mapped = Figure::known(mapped);
    reading.files->push_back(std::move(libraries));
  }
  Series series = series_of(trace, kSmallPoints);
  const bool told = std::ranges::any_of(
      series.tree.layers, [](const Layer& layer) { return layer.kind == LayerKind::file; });
  for (Layer& layer : series.tree.layers) {
    if (layer.kind == LayerKind::file) {
      layer.kind = LayerKind::other_files;
    } else if (told && layer.kind == LayerKind::other_files) {
      layer.kind = LayerKind::file;
      layer.name = name_of(data);
    }
  }
  return series;
}

std::string small_svg(const Trace& trace, const PictureOptions& options) {
  return with_style(
      kSmallChartWidth, kSmallChartHeight,
      draw_chart(small_series(trace), {}, "Memory over time", picture_in_words(trace), options));
}

}  // namespace

std::string svg_report(const Trace& trace, const PictureOptions& options) {
  if (options.small) return small_svg(trace, options);
  const Series series = series_of(trace, kPoints);
  std::string body;
  double y = 26;
  for (const std::string& line : wrapped(judge(trace).headline)) {
    body += text("headline", 16, y, line);
    y += kLineHeight;
  }
  body += "<g transform=\"translate(0 " + coordinate(y) + ")\">\n" +
          draw_chart(series, trace.marks, "Memory over time", picture_in_words(trace), options) +
          "</g>\n";
  y += kChartHeight + 8;
  y += add_legend(series, y, body) + 12;
  return with_style(kWidth, y, body);
}

}  // namespace lowtide
