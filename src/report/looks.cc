#include "report/looks.h"

#include <algorithm>
#include <iterator>

#include "report/markup.h"

namespace lowtide {
namespace {

constexpr int kProcessLooks[] = {1, 2, 3, 4, 5, 7};

// " (unknown)" if a column has no value at all, " (partly unknown)" if some are missing.
std::string gaps(const Column& column) {
  std::size_t known = 0;
  for (const auto& value : column) known += value ? 1 : 0;
  return known == 0 ? " (unknown)" : known < column.size() ? " (partly unknown)" : "";
}

bool always_zero(const Column& column) {
  return std::ranges::all_of(column, [](const auto& value) { return value == 0U; });
}

}  // namespace

// What is drawn over the colour of each look: nothing, or strokes in one direction.
std::string pattern_definitions() {
  constexpr const char* kStrokes[] = {
      "",       "M0 8L8 0",     "M0 0L8 8",     "M0 4H8",       "M4 0V8", "M0 8L8 0M0 0L8 8",
      "M3 4h2", "M0 4H8M4 0V8", "M1 2h2M5 6h2", "M3 4h2M4 3v2", "M1 4h6"};
  std::string out = "<defs>\n";
  for (std::size_t look = 0; look < std::size(kStrokes); ++look) {
    const std::string number = std::to_string(look);
    out += "<pattern id=\"lt-look-" + number +
           "\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect width=\"8\" "
           "height=\"8\" class=\"look-" +
           number + "\"/>";
    if (*kStrokes[look] != 0)
      out += std::string("<path class=\"hatch\" d=\"") + kStrokes[look] + "\"/>";
    out += "</pattern>\n";
  }
  return out +
         "<pattern id=\"lt-unknown\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
         "<path class=\"unknown-hatch\" d=\"M0 6L6 0\"/></pattern>\n</defs>\n";
}

std::vector<int> looks_of(const View& view) {
  std::vector<int> looks;
  int file = 0;
  std::size_t process = 0;
  for (const Layer& layer : view.layers) {
    switch (layer.kind) {
      case LayerKind::heap:
        looks.push_back(0);
        break;
      case LayerKind::file:
        looks.push_back(++file);
        break;
      case LayerKind::process:
        looks.push_back(kProcessLooks[process++ % std::size(kProcessLooks)]);
        break;
      case LayerKind::libraries:
        looks.push_back(6);
        break;
      case LayerKind::other_files:
      case LayerKind::others:
        looks.push_back(10);
        break;
      case LayerKind::shared:
        looks.push_back(7);
        break;
      case LayerKind::page_tables:
        looks.push_back(8);
        break;
      case LayerKind::unsplit:
        looks.push_back(9);
        break;
    }
  }
  return looks;
}

std::string layer_title(const Layer& layer) {
  const bool mapped = layer.kind == LayerKind::file || layer.kind == LayerKind::libraries;
  return (mapped ? "mapped: " : "") + layer_name(layer, 40);
}

std::string layer_name(const Layer& layer, std::size_t most_letters) {
  return layer.kind == LayerKind::file ? short_name(layer.name, most_letters)
                                       : short_text(layer.name, most_letters);
}

std::vector<LegendEntry> legend_of(const Series& series) {
  std::vector<LegendEntry> entries;
  if (!always_zero(series.unmapped_cache)) {
    entries.push_back(
        {"<rect class=\"cache\" width=\"22\" height=\"14\"/><path class=\"cached\" d=\"M0 1H22\"/>",
         kUnmappedCache + gaps(series.unmapped_cache)});
  }
  const std::vector<int> looks = looks_of(series.tree);
  for (std::size_t i = looks.size(); i-- > 0;) {
    const Layer& layer = series.tree.layers[i];
    entries.push_back({"<rect width=\"22\" height=\"14\" fill=\"url(#lt-look-" +
                           std::to_string(looks[i]) + ")\"/>",
                       layer_title(layer) + gaps(layer.bytes)});
  }
  if (highest(series.limit) > 0) {
    entries.push_back({"<path class=\"limit\" d=\"M0 7H22\"/>", "memory limit"});
  }
  return entries;
}

}  // namespace lowtide
