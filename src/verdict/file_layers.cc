#include <algorithm>
#include <cmath>
#include <map>

#include "meter/sums.h"
#include "verdict/courses.h"
#include "verdict/series_parts.h"

namespace lowtide {
namespace {

constexpr std::size_t kMostLayers = 5;  // as many as there are colours that everyone can tell apart
constexpr std::uint64_t kSmallestPart = 50;  // a layer has at least 1/50 of all mapped pages

std::uint64_t between(std::uint64_t from, std::uint64_t to, double part) {
  const double a = static_cast<double>(from), b = static_cast<double>(to);
  return static_cast<std::uint64_t>(std::min(a + (b - a) * part, 0x1p63));
}

std::map<std::string, std::uint64_t> peaks_of_data(const Trace& trace) {
  std::map<std::string, std::uint64_t> peaks;
  for (const Reading& reading : trace.readings) {
    if (!reading.files) continue;
    for (const FileReading& file : *reading.files) {
      if (is_library(file.path)) continue;
      std::uint64_t& peak = peaks[file.path];
      peak = std::max(peak, file.mapped.value.value_or(0));
    }
  }
  return peaks;
}

// The files that get a layer: no libraries, and none too thin to see.
std::vector<std::string> largest_files(const Trace& trace, std::uint64_t most_mapped) {
  const std::map<std::string, std::uint64_t> peaks = peaks_of_data(trace);
  std::vector<std::pair<std::uint64_t, std::string>> sorted;
  for (const auto& [path, peak] : peaks) sorted.emplace_back(peak, path);
  std::ranges::sort(sorted, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<std::string> paths;
  for (const auto& [peak, path] : sorted) {
    if (peak == 0 || peak < most_mapped / kSmallestPart || paths.size() == kMostLayers) break;
    paths.push_back(path);
  }
  return paths;
}

// A file that is missing from a list of files was not mapped then.
std::optional<std::uint64_t> mapped_then(const Reading& reading, const std::string& path) {
  if (!reading.files) return std::nullopt;
  std::uint64_t sum = 0;
  for (const FileReading& file : *reading.files) {
    if (file.path != path) continue;
    if (!file.mapped.value) return std::nullopt;
    sum = std::max(sum, *file.mapped.value);
  }
  return sum;
}

Column told_of(const Trace& trace, const std::string& path) {
  Column told;
  for (const Reading& reading : trace.readings) told.push_back(mapped_then(reading, path));
  return bridged(trace, told);
}

// All libraries of a reading; unknown if one of them is unknown, 0 if none is mapped.
std::optional<std::uint64_t> libraries_then(const Reading& reading) {
  if (!reading.files) return std::nullopt;
  std::uint64_t sum = 0;
  for (const FileReading& file : *reading.files) {
    if (!is_library(file.path)) continue;
    if (!file.mapped.value) return std::nullopt;
    sum = saturating_add(sum, *file.mapped.value);
  }
  return sum;
}

Column told_of_libraries(const Trace& trace) {
  Column told;
  for (const Reading& reading : trace.readings) told.push_back(libraries_then(reading));
  return bridged(trace, told);
}

// Bytes of the files in memory: for each file the cached bytes, or the mapped bytes if those are
// more, as with a file that several processes map. Unknown if no file's page cache is known.
std::optional<std::uint64_t> in_memory_then(const Reading& reading, FileSplit split) {
  std::optional<std::uint64_t> sum;
  if (!reading.files) return sum;
  bool known = false;
  for (const FileReading& file : *reading.files) {
    const bool counts = split == FileSplit::each || !is_library(file.path);
    known = known || (counts && file.cached.value);
    const std::uint64_t cached = counts ? file.cached.value.value_or(0) : 0;
    add_known(sum, std::max(cached, file.mapped.value.value_or(0)));
  }
  return known ? sum : std::nullopt;
}

// The name of the file that holds nearly all data, or of all files together.
std::string name_of_data(const Trace& trace) {
  const std::map<std::string, std::uint64_t> peaks = peaks_of_data(trace);
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

// Scales the parts of one reading to fit the mapped total; returns what is left of it.
std::uint64_t fit(std::uint64_t mapped, std::vector<std::uint64_t>& parts) {
  double sum = 0;
  for (const std::uint64_t part : parts) sum += static_cast<double>(part);
  const double shrink = sum > static_cast<double>(mapped) ? static_cast<double>(mapped) / sum : 1;
  std::uint64_t left = mapped;
  for (std::uint64_t& part : parts) {
    if (shrink < 1) part = between(0, part, shrink);
    part = std::min(part, left);
    left -= part;
  }
  return left;
}

}  // namespace

Column unmapped_cache(const Trace& trace, const Column& mapped, FileSplit split) {
  Column told;
  for (const Reading& reading : trace.readings) told.push_back(in_memory_then(reading, split));
  Column more = bridged(trace, told);
  for (std::size_t row = 0; row < more.size(); ++row) {
    if (more[row]) *more[row] -= std::min(*more[row], mapped[row].value_or(0));
  }
  return more;
}

Column bridged(const Trace& trace, const Column& asked) {
  Column out(asked.size());
  std::optional<std::size_t> before;
  for (std::size_t row = 0; row < asked.size(); ++row) {
    if (!trace.readings[row].files) {
      if (before) out[row] = asked[*before];
      continue;
    }
    out[row] = asked[row];
    if (before && asked[*before] && asked[row]) {
      const double start = trace.readings[*before].seconds;
      const double span = trace.readings[row].seconds - start;
      for (std::size_t mid = *before + 1; mid < row && span > 0; ++mid) {
        const double part = (trace.readings[mid].seconds - start) / span;
        out[mid] = between(*asked[*before], *asked[row], part);
      }
    }
    before = row;
  }
  return out;
}

std::vector<Layer> file_layers(const Trace& trace, const Column& mapped, FileSplit split) {
  std::vector<Layer> layers;
  Layer libraries{LayerKind::libraries, "libraries", told_of_libraries(trace)};
  if (highest(libraries.bytes) > 0) layers.push_back(std::move(libraries));
  if (split == FileSplit::each) {
    for (const std::string& path : largest_files(trace, highest(mapped))) {
      layers.push_back({LayerKind::file, path, told_of(trace, path)});
    }
  }
  Layer rest{LayerKind::other_files, layers.empty() ? "mapped files" : "other mapped files",
             Column(mapped.size())};
  if (split == FileSplit::data)
    rest = {LayerKind::file, name_of_data(trace), std::move(rest.bytes)};
  std::vector<std::uint64_t> parts(layers.size());
  for (std::size_t row = 0; row < mapped.size(); ++row) {
    for (std::size_t i = 0; i < layers.size(); ++i) parts[i] = layers[i].bytes[row].value_or(0);
    if (mapped[row]) rest.bytes[row] = fit(*mapped[row], parts);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      layers[i].bytes[row] = mapped[row] ? std::optional(parts[i]) : std::nullopt;
    }
  }
  layers.push_back(std::move(rest));
  return layers;
}

}  // namespace lowtide
