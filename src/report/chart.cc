#include "report/chart.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lowtide/bytes.h"
#include "report/axis.h"
#include "report/markup.h"
#include "report/panel.h"

namespace lowtide {
namespace {

constexpr double kLetter = 8;  // the width of one letter of a label, rounded up
constexpr std::size_t kMostMarks = 25;
constexpr std::uint64_t kLeastTop = 1 << 20;  // a finer axis would magnify noise
constexpr std::size_t kNameLetters = 28;
constexpr double kLimitInPicture = 2;  // a limit above this multiple of the peak is only named

std::uint64_t highest_total(const View& view) {
  std::uint64_t top = 0;
  const std::size_t points = view.layers.empty() ? 0 : view.layers.front().bytes.size();
  for (std::size_t i = 0; i < points; ++i) top = std::max(top, total_at(view, i).value_or(0));
  return top;
}

std::string line(const char* look, double x1, double y1, double x2, double y2) {
  return std::string("<path class=\"") + look + "\" d=\"M" + coordinate(x1) + " " + coordinate(y1) +
         "L" + coordinate(x2) + " " + coordinate(y2) + "\"/>\n";
}

std::string path(const std::string& attributes, const std::string& d) {
  return d.empty() ? "" : "<path " + attributes + " d=\"" + d + "\"/>\n";
}

// The positions of the panels; a small picture has only one.
struct Frame {
  double width = kChartWidth, height = 520;
  Panel memory{76, 944, 44, 340, 0, 1};
  std::optional<Panel> read = Panel{76, 944, 386, 466, 0, 1};
  int most_times = 8;
};

Frame frame_of(const PictureOptions& options, double end_seconds) {
  Frame frame;
  if (options.small) {
    frame = {kSmallChartWidth, kSmallChartHeight, {70, 428, 36, 210, 0, 1}, std::nullopt, 5};
  }
  frame.memory.end_seconds = std::max(end_seconds, options.seconds);
  if (frame.read) frame.read->end_seconds = frame.memory.end_seconds;
  return frame;
}

// With several pictures on one page, an id would always refer to the first.
std::string opening(const Frame& frame, const std::string& title, const std::string& description) {
  const std::string width = coordinate(frame.width), height = coordinate(frame.height);
  const std::string begin =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lt-chart\" role=\"img\" width=\"" + width +
      "\" height=\"" + height + "\" viewBox=\"0 0 " + width + " " + height + "\" ";
  if (!frame.read) {
    return begin + "aria-label=\"" + escaped(title) + ". " + escaped(description) + "\">\n";
  }
  return begin + "aria-labelledby=\"lt-title lt-description\">\n<title id=\"lt-title\">" +
         escaped(title) + "</title>\n<desc id=\"lt-description\">" + escaped(description) +
         "</desc>\n";
}

std::string grid(const Panel& panel, const ByteTicks& ticks, const char* suffix) {
  std::string out;
  for (const std::uint64_t at : ticks.at) {
    const double y = panel.y(at);
    out += line(at == 0 ? "base" : "grid", panel.left, y, panel.right, y);
    out += svg_text("tick end", panel.left - 8, y + 4,
                    at == 0 ? std::string("0") : format_bytes(at) + suffix);
  }
  return out;
}

std::string time_axis(const Frame& frame) {
  const Panel &memory = frame.memory, &read = frame.read ? *frame.read : frame.memory;
  std::string out;
  for (const double at : time_ticks(memory.end_seconds, frame.most_times)) {
    const double x = memory.x(at);
    if (at > 0) out += line("grid", x, memory.top, x, memory.bottom);
    if (at > 0 && frame.read) out += line("grid", x, read.top, x, read.bottom);
    out += svg_text(memory.right - x < 30 ? "tick end" : "tick mid",
                    memory.right - x < 30 ? memory.right : x, read.bottom + 18, time_text(at));
  }
  return out + svg_text("axis mid", (memory.left + memory.right) / 2, read.bottom + 40,
                        "time since the start");
}

// A name on its band, if there is room.
std::string band_name(const Panel& panel, const Series& series, const Band& band,
                      const std::string& name, std::vector<Box>& taken) {
  const double width = kLetter * static_cast<double>(name.size()) + 12;
  const auto box = room_for(panel, series.seconds, band, width, taken);
  if (!box) return "";
  taken.push_back(*box);
  return svg_text("name mid", (box->left + box->right) / 2, (box->top + box->bottom) / 2 + 4, name);
}

// The layers, and on top of them the page cache that no process maps.
std::string stack(const Panel& panel, const Series& series, std::vector<Box>& taken) {
  const std::vector<Band> bands = bands_of(series.tree);
  const std::vector<int> looks = looks_of(series.tree);
  std::string areas, names;
  for (std::size_t i = 0; i < bands.size(); ++i) {
    areas += path("class=\"area\" fill=\"url(#lt-look-" + std::to_string(looks[i]) + ")\"",
                  area_path(panel, series.seconds, bands[i]));
    const std::string name = layer_name(series.tree.layers[i], kNameLetters);
    names += band_name(panel, series, bands[i], name, taken);
  }
  if (highest(series.unmapped_cache) == 0) return areas + names;
  const Band cache = band_above(series.tree, series.unmapped_cache);
  areas += path("class=\"cache\"", area_path(panel, series.seconds, cache));
  areas += path("class=\"cached\"", line_path(panel, series.seconds, cache.high));
  return areas + names + band_name(panel, series, cache, kUnmappedCache, taken);
}

// The stretches in which nothing is known.
std::string unknown_spans(const Panel& panel, const Series& series) {
  std::string out;
  const std::size_t points = series.seconds.size();
  for (std::size_t first = 0; first < points; ++first) {
    if (total_at(series.tree, first)) continue;
    std::size_t last = first;
    while (last + 1 < points && !total_at(series.tree, last + 1)) ++last;
    const double left = panel.x(series.seconds[first > 0 ? first - 1 : 0]);
    const double right =
        last + 1 < points ? panel.x(series.seconds[last + 1]) : panel.x(series.end_seconds);
    out += "<rect class=\"unknown\" fill=\"url(#lt-unknown)\" x=\"" + coordinate(left) + "\" y=\"" +
           coordinate(panel.top) + "\" width=\"" + coordinate(right - left) + "\" height=\"" +
           coordinate(panel.bottom - panel.top) + "\"/>\n";
    if (right - left > 70) {
      out += svg_text("name mid", (left + right) / 2, (panel.top + panel.bottom) / 2, "unknown");
    }
    first = last;
  }
  return out;
}

std::string limit_line(const Panel& panel, const Series& series, std::uint64_t limit, bool small,
                       std::vector<Box>& taken) {
  if (limit == 0 || (small && limit > panel.top_bytes)) return "";
  const bool above = limit > panel.top_bytes;
  const std::string words =
      "memory limit " + format_bytes(limit) + (above ? ", above this chart" : "");
  const double y = panel.y(limit), base = above || y - panel.top < 18 ? y + 14 : y - 6;
  const double width = kLetter * static_cast<double>(words.size());
  taken.push_back({panel.left + 4, base - 13, panel.left + 12 + width, base + 5});
  return path("class=\"limit\"", above ? "" : line_path(panel, series.seconds, series.limit)) +
         svg_text("name", panel.left + 8, base, words);
}

// Its label is at its upper end, above everything drawn there; below the line if there is no room
// above.
std::string trend_line(const Panel& panel, const Series& series, bool small,
                       std::vector<Box>& taken) {
  if (!series.trend || small) return "";
  const TrendLine& trend = *series.trend;
  const double right = panel.x(trend.to_seconds), y = panel.y(trend.to_bytes);
  const double width = kLetter * static_cast<double>(trend.words.size());
  const double end = std::max(right, panel.left + width + 8);
  const Column top = band_above(series.tree, series.unmapped_cache).high;
  double base = y - 8;
  for (std::size_t i = 0; i < series.seconds.size(); ++i) {
    const double x = panel.x(series.seconds[i]);
    if (x < end - width || x > end) continue;
    base = std::min(
        base, panel.y(std::max(top[i].value_or(0), total_at(series.tree, i).value_or(0))) - 8);
  }
  if (base < panel.top + 14) base = std::min(y + 34, panel.bottom - 6);
  taken.push_back({end - width, base - 13, end, base + 5});
  return line("trend", panel.x(trend.from_seconds), panel.y(trend.from_bytes), right, y) +
         svg_text("name end", end - 4, base, trend.words);
}

std::string mark_lines(const Panel& memory, const Panel& read, const std::vector<Mark>& marks) {
  std::string out;
  double free_from = memory.left;
  const std::size_t stride = marks.size() / kMostMarks + 1;
  for (std::size_t i = 0; i < marks.size(); i += stride) {
    const double x = memory.x(marks[i].seconds);
    out += line("mark", x, memory.top, x, memory.bottom);
    out += line("mark", x, read.top, x, read.bottom);
    const std::string name = short_text(marks[i].text, 16);
    const double half = kLetter * static_cast<double>(name.size()) / 2;
    if (x - half < free_from || x + half > memory.right) continue;
    out += svg_text("tick mid", x, memory.top - 6, name);
    free_from = x + half + 10;
  }
  return out;
}

std::string read_panel(const Panel& panel, const Series& series) {
  const std::string steps = step_path(panel, series.seconds, series.tree.read_bytes_per_s);
  if (!steps.empty()) return path("class=\"read\"", steps);
  return svg_text("name mid", (panel.left + panel.right) / 2, (panel.top + panel.bottom) / 2,
                  "bytes read: unknown");
}

}  // namespace

std::uint64_t chart_peak(const Series& series) {
  return std::max(highest_total(series.tree),
                  highest(band_above(series.tree, series.unmapped_cache).high));
}

std::string draw_chart(const Series& series, const std::vector<Mark>& marks,
                       const std::string& title, const std::string& description,
                       const PictureOptions& options) {
  const std::uint64_t limit = highest(series.limit);
  const std::uint64_t peak = std::max({chart_peak(series), options.memory_bytes, kLeastTop});
  const bool limit_fits = static_cast<double>(limit) <= kLimitInPicture * static_cast<double>(peak);
  const ByteTicks memory_ticks = byte_ticks(limit_fits ? std::max(peak, limit) : peak, 5);
  Frame frame = frame_of(options, series.end_seconds);
  frame.memory.top_bytes = memory_ticks.at.back();

  std::string out =
      opening(frame, title, description) + pattern_definitions() + "<g class=\"plot\">\n";
  out += svg_text("axis", 8, 18,
                  options.small ? "memory and page cache"
                                : "memory of all processes, and page cache of their files");
  out += grid(frame.memory, memory_ticks, "") + time_axis(frame);
  std::vector<Box> taken;
  const std::string over = limit_line(frame.memory, series, limit, options.small, taken) +
                           trend_line(frame.memory, series, options.small, taken);
  out += unknown_spans(frame.memory, series) + stack(frame.memory, series, taken);
  if (frame.read) {
    const ByteTicks read_ticks =
        byte_ticks(std::max(kLeastTop, highest(series.tree.read_bytes_per_s)), 3);
    frame.read->top_bytes = read_ticks.at.back();
    out += svg_text("axis", 8, frame.read->top - 16, "read from disk per second");
    out += grid(*frame.read, read_ticks, "/s") + read_panel(*frame.read, series);
    out += mark_lines(frame.memory, *frame.read, marks);
  }
  return out + over + "</g>\n</svg>\n";
}

}  // namespace lowtide
