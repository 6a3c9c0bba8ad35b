#include <algorithm>
#include <cmath>

#include "core/quote.h"
#include "lowtide/json.h"
#include "meter/chart.h"
#include "meter/file_rows.h"
#include "meter/markup.h"
#include "meter/page.h"

namespace lowtide {
namespace {

constexpr std::size_t kMostMarks = 500;

void add_view(JsonWriter& json, const char* name, const View& view) {
  const std::vector<int> looks = looks_of(view);
  json.key(name).begin_object().key("layers").begin_array();
  for (std::size_t i = 0; i < view.layers.size(); ++i) {
    const Layer& layer = view.layers[i];
    json.begin_object().field("title", layer_title(layer));
    json.field("name", short_name(layer.name, 28)).field("look", looks[i]);
    json.field("bytes", layer.bytes).end_object();
  }
  json.end_array().field("read", view.read_bytes_per_s).end_object();
}

// Where it is known only now and then, the last value says it all: limits seldom change.
void add_limit(JsonWriter& json, const Column& limit) {
  const bool same = std::ranges::all_of(limit, [&](const auto& one) { return one == limit[0]; });
  json.key("limit");
  if (same) {
    json.value(limit.empty() ? std::nullopt : limit[0]);
  } else {
    json.value(limit);
  }
}

void add_tables(JsonWriter& json, const Trace& trace) {
  const Peak peak = peak_of(trace);
  json.key("peak").begin_object().field("rss", peak.rss).field("anon", peak.anon);
  json.field("file", peak.file).field("shmem", peak.shmem);
  json.field("page_tables", peak.page_tables).field("page_cache", peak.page_cache);
  json.field("group_usage", peak.group_usage).end_object();
  const Growth growth = growth_of(trace);
  json.key("growth").begin_object().field("rss", growth.rss).field("anon", growth.anon);
  json.field("file", growth.file).field("shmem", growth.shmem);
  json.field("page_tables", growth.page_tables).field("page_cache", growth.page_cache);
  json.end_object().key("files").begin_array();
  std::vector<FileRow> rows = file_rows(trace);
  if (rows.size() > kMostFileRows) rows.resize(kMostFileRows);
  for (const FileRow& row : rows) {
    json.begin_object().field("path", shown(row.path)).field("size", row.size);
    json.field("peak_mapped", row.peak_mapped).field("peak_cached", row.peak_cached);
    json.field("mapped_now", row.mapped_now).end_object();
  }
  json.end_array();
}

}  // namespace

std::string page_data(const Trace& trace, const Series& series) {
  JsonWriter json;
  json.begin_object().field("end", series.end_seconds).key("seconds").begin_array();
  for (const double at : series.seconds) json.value(std::round(at * 1000) / 1000);
  json.end_array();
  add_view(json, "tree", series.tree);
  if (series.has_children) add_view(json, "root", series.root);
  json.field("cached", series.cached);
  add_limit(json, series.limit);
  json.key("marks").begin_array();
  const std::size_t stride = trace.marks.size() / kMostMarks + 1;
  for (std::size_t i = 0; i < trace.marks.size(); i += stride) {
    json.begin_object().field("seconds", trace.marks[i].seconds);
    json.field("text", short_text(trace.marks[i].text, 16)).end_object();
  }
  json.end_array();
  add_tables(json, trace);
  json.end_object();
  // Within texts only, and there a script element could end or begin.
  std::string safe;
  for (const char c : json.text()) safe += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return safe;
}

}  // namespace lowtide
