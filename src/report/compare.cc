#include "lowtide/command/compare.h"

#include <algorithm>

#include "meter/recording.h"
#include "os/output_file.h"
#include "report/assets.h"
#include "report/chart.h"
#include "report/markup.h"
#include "report/page.h"
#include "verdict/series.h"

namespace lowtide {
namespace {

constexpr std::size_t kPictures = 4;  // of an SVG file
constexpr double kHeadHeight = 50;    // the title and the note above a picture

// The pictures of a section on the same axes, and what their layers are.
struct Drawn {
  std::vector<std::string> pictures;  // one per entry; empty without a recording
  std::vector<LegendEntry> legend;
};

void add_legend(std::vector<LegendEntry>& legend, const std::vector<LegendEntry>& more) {
  for (const LegendEntry& entry : more) {
    if (std::ranges::find(legend, entry.sign, &LegendEntry::sign) == legend.end()) {
      legend.push_back(entry);
    }
  }
}

Drawn draw(const ComparedSection& section) {
  Drawn drawn;
  std::vector<Series> all;
  PictureOptions axes{.small = true};
  for (const Compared& entry : section.entries) {
    all.push_back(entry.recording
                      ? series_of(entry.recording->impl().trace, kSmallChartPoints, FileSplit::data)
                      : Series{});
    axes.memory_bytes = std::max(axes.memory_bytes, chart_peak(all.back()));
    axes.seconds = std::max(axes.seconds, all.back().end_seconds);
    if (entry.recording) add_legend(drawn.legend, legend_of(all.back()));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Compared& entry = section.entries[i];
    drawn.pictures.push_back(entry.recording
                                 ? draw_chart(all[i], {}, "Memory over time: " + entry.title,
                                              picture_in_words(entry.recording->impl().trace), axes)
                                 : "");
  }
  return drawn;
}

std::string figure(const Compared& entry, const std::string& picture) {
  return std::string(entry.ours ? "<figure class=\"ours\">" : "<figure>") + "<figcaption>" +
         escaped(entry.title) + "<span>" + escaped(entry.note) + "</span></figcaption>\n" +
         picture + "</figure>\n";
}

std::string table(const ComparedSection& section, const std::vector<std::string>& columns) {
  std::string out = "<table class=\"cards\">\n<thead><tr><th scope=\"col\">method</th>";
  for (const std::string& name : columns) {
    out += "<th scope=\"col\" class=\"number\">" + escaped(name) + "</th>";
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const Compared& entry : section.entries) {
    out += std::string(entry.ours ? "<tr class=\"ours\">" : "<tr>") + "<th scope=\"row\">" +
           escaped(entry.title) + "</th>";
    for (std::size_t i = 0; i < entry.cells.size(); ++i) {
      out += "<td class=\"number\" data-name=\"" + escaped(columns[i]) + "\">" +
             escaped(entry.cells[i]) + "</td>";
    }
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n";
}

std::string foot(const Comparison& comparison) {
  for (const ComparedSection& section : comparison.sections) {
    for (const Compared& entry : section.entries) {
      if (!entry.recording) continue;
      const Trace& trace = entry.recording->impl().trace;
      return "<footer>Measured on " + escaped(trace.machine) + ", " +
             date_text(trace.started_unix_ms) + ".</footer>\n";
    }
  }
  return "";
}

std::string page(const Comparison& comparison) {
  std::string body, lead;
  std::vector<LegendEntry> legend;
  for (const std::string& words : comparison.lead) lead += "<p>" + escaped(words) + "</p>\n";
  for (const ComparedSection& section : comparison.sections) {
    const Drawn drawn = draw(section);
    add_legend(legend, drawn.legend);
    body += "<section>\n<h2>" + escaped(section.title) + "</h2>\n<p class=\"note\">" +
            escaped(section.note) + "</p>\n<div class=\"panels\">\n";
    for (std::size_t i = 0; i < drawn.pictures.size(); ++i) {
      body += figure(section.entries[i], drawn.pictures[i]);
    }
    body += "</div>\n" + table(section, comparison.columns) + "</section>\n";
  }
  return page_top(comparison.title, {kChartCss, kPageCss, kCompareCss}) + "<main>\n<h1>" +
         escaped(comparison.title) + "</h1>\n" + lead + page_legend(legend) + body +
         foot(comparison) + "</main>\n</body>\n</html>\n";
}

std::string picture(ComparedSection section) {
  if (section.entries.size() > kPictures) section.entries.resize(kPictures);
  const Drawn drawn = draw(section);
  const double row_height = kHeadHeight + kSmallChartHeight, width = 2 * kSmallChartWidth;
  std::string body;
  double bottom = 0;
  for (std::size_t i = 0; i < drawn.pictures.size(); ++i) {
    const double left = i % 2 == 0 ? 0 : kSmallChartWidth;
    const double top = row_height * static_cast<double>(i / 2);
    body += svg_text("headline", left + 8, top + 24, section.entries[i].title) +
            svg_text("tick", left + 8, top + 43, section.entries[i].note) +
            "<g transform=\"translate(" + coordinate(left) + " " + coordinate(top + kHeadHeight) +
            ")\">\n" + drawn.pictures[i] + "</g>\n";
    bottom = top + row_height;
  }
  bottom += 10;
  bottom += svg_legend(drawn.legend, width, bottom, body) + 8;
  return svg_file(width, bottom, body);
}

}  // namespace

void save_comparison(const Comparison& comparison, const std::string& path) {
  write_whole(path, path.ends_with(".svg") ? picture(comparison.sections.at(0)) : page(comparison));
}

}  // namespace lowtide
