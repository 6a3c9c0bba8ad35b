#include "meter/file_layers.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace lowtide {
namespace {

constexpr std::size_t kMostFiles = 5;        // as many as colours that differ for every eye
constexpr std::uint64_t kSmallestPart = 50;  // a layer is at least 1/50 of the largest

std::uint64_t between(std::uint64_t from, std::uint64_t to, double part) {
  const double a = static_cast<double>(from), b = static_cast<double>(to);
  return static_cast<std::uint64_t>(std::min(a + (b - a) * part, 0x1p63));
}

std::vector<std::string> largest_files(const Trace& trace) {
  std::map<std::string, std::uint64_t> peaks;
  for (const Reading& reading : trace.readings) {
    if (!reading.files) continue;
    for (const FileReading& file : *reading.files) {
      std::uint64_t& peak = peaks[file.path];
      peak = std::max(peak, file.mapped.value.value_or(0));
    }
  }
  std::vector<std::pair<std::uint64_t, std::string>> sorted;
  for (const auto& [path, peak] : peaks) sorted.emplace_back(peak, path);
  std::ranges::sort(sorted, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<std::string> paths;
  for (const auto& [peak, path] : sorted) {
    if (peak == 0 || peak < sorted.front().first / kSmallestPart || paths.size() == kMostFiles) {
      break;
    }
    paths.push_back(path);
  }
  return paths;
}

// A file that is not in a list of files was not mapped then.
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

// The parts of one reading, made to fit into what is mapped; returns what is left of it.
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

std::vector<Layer> file_layers(const Trace& trace, const Column& mapped) {
  std::vector<Layer> layers;
  for (const std::string& path : largest_files(trace)) {
    layers.push_back({LayerKind::file, path, told_of(trace, path)});
  }
  Layer rest{LayerKind::other_files, layers.empty() ? "mapped files" : "other mapped files",
             Column(mapped.size())};
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
