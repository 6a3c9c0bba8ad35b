#include <algorithm>
#include <cmath>

#include "lowtide/command/json.h"
#include "report/looks.h"
#include "report/markup.h"
#include "report/page.h"

namespace lowtide {
namespace {

constexpr std::size_t kMostPageMarks = 500;

void add_view(JsonWriter& json, const char* name, const View& view) {
  const std::vector<int> looks = looks_of(view);
  json.key(name).begin_object().key("layers").begin_array();
  for (std::size_t i = 0; i < view.layers.size(); ++i) {
    const Layer& layer = view.layers[i];
    json.begin_object().field("title", layer_title(layer));
    json.field("name", layer_name(layer, 28)).field("look", looks[i]);
    json.field("bytes", layer.bytes).end_object();
  }
  json.end_array().field("read", view.read_bytes_per_s).end_object();
}

// It is known only now and then, but the last value is enough: limits seldom change.
void add_limit(JsonWriter& json, const Column& limit) {
  const bool same = std::ranges::all_of(limit, [&](const auto& one) { return one == limit[0]; });
  json.key("limit");
  if (same) {
    json.value(limit.empty() ? std::nullopt : limit[0]);
  } else {
    json.value(limit);
  }
}

}  // namespace

std::string page_data(const Trace& trace, const Series& series) {
  JsonWriter json;
  json.begin_object().field("duration", series.end_seconds).key("seconds").begin_array();
  for (const double at : series.seconds) json.value(std::round(at * 1000) / 1000);
  json.end_array();
  add_view(json, "tree", series.tree);
  if (series.has_children) {
    add_view(json, "root", series.root);
    add_view(json, "processes", series.processes);
  }
  json.field("cache", series.unmapped_cache);
  if (series.trend) {
    json.key("trend").begin_object().field("from", series.trend->from_seconds);
    json.field("to", series.trend->to_seconds).field("low", series.trend->from_bytes);
    json.field("high", series.trend->to_bytes).field("words", series.trend->words).end_object();
  }
  add_limit(json, series.limit);
  json.key("marks").begin_array();
  const std::size_t stride = trace.marks.size() / kMostPageMarks + 1;
  for (std::size_t i = 0; i < trace.marks.size(); i += stride) {
    json.begin_object().field("seconds", trace.marks[i].seconds);
    json.field("text", short_text(trace.marks[i].text, 16)).end_object();
  }
  json.end_array();
  json.end_object();
  // "<" occurs only inside texts, where it could begin or end a script element.
  std::string safe;
  for (const char c : json.text()) safe += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return safe;
}

}  // namespace lowtide
