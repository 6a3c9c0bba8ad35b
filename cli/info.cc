#include "lowtide/info.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "failure.h"
#include "files.h"
#include "lowtide/bytes.h"
#include "lowtide/command/terminal.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

struct Looked {
  std::string path;
  std::optional<Info> found;
  std::string error;  // why nothing was found
};

std::string cached_words(const Info& found) {
  if (!found.cached_bytes) return "unknown";
  return percent_text(*found.cached_bytes, found.bytes);
}

std::string arrays_of(const Info& found) {
  using enum Table::Align;
  Table table({{"key"}, {"dtype"}, {"shape", right}, {"size", right}});
  for (const ArrayInfo& one : found.arrays) {
    if (one.fault.empty()) {
      table.add_row(
          {shown(one.key), shown(one.dtype), shape_text(one.shape), format_bytes(one.bytes)});
    } else {
      table.add_row({shown(one.key), "cannot be read", "", ""});
    }
  }
  std::string text = table.text();
  for (const ArrayInfo& one : found.arrays) {
    if (!one.fault.empty()) text += shown(one.fault) + "\n";
  }
  return text;
}

std::string facts_of(const Info& found) {
  Fields fields;
  const bool tokens = found.kind == FileKind::tokens;
  fields.add("kind", file_kind_word(found.kind));
  fields.add("format", found.format);
  const bool several = has_several_arrays(found);
  if (!several) fields.add("dtype", shown(found.dtype));
  fields.add(tokens ? "tokens" : several ? "contains" : "shape", shape_text(found));
  if (found.kind == FileKind::sparse) {
    fields.add("values", grouped(found.values));
    fields.add("columns", "in a Parquet file: lowtide.info in Python reads it");
  }
  if (found.fortran_order) fields.add("order", "F (column by column)");
  if (found.documents) fields.add("documents", grouped(*found.documents));
  fields.add("size", format_bytes(found.bytes) + " (" + grouped(found.bytes) + " bytes)");
  if (found.shards > 1) fields.add("shards", grouped(found.shards));
  fields.add("cached", found.cached_bytes
                           ? format_bytes(*found.cached_bytes) + " (" + cached_words(found) + ")"
                           : "unknown: " + found.cached_unknown);
  return paint(shown(found.path), Tone::bold) + "\n" + fields.text() +
         (found.arrays.empty() ? "" : arrays_of(found));
}

std::string table_of(const std::vector<Info>& all) {
  using enum Table::Align;
  Table table({{"file"},
               {"kind"},
               {"format"},
               {"dtype"},
               {"shape, tokens", right},
               {"size", right},
               {"cached", right}});
  for (const Info& found : all) {
    table.add_row({shown(found.path), file_kind_word(found.kind), found.format, shown(found.dtype),
                   shape_text(found), format_bytes(found.bytes), cached_words(found)});
  }
  return table.text();
}

std::string json_of(const std::vector<Looked>& all) {
  JsonWriter json;
  const auto write = [&](const Looked& looked) {
    if (looked.found) {
      write_info(&json, *looked.found);
    } else {
      write_failure(&json, looked.path, looked.error);
    }
  };
  if (all.size() == 1) {
    write(all.front());
    return json.text() + "\n";
  }
  json.begin_object().key("files").begin_array();
  for (const Looked& looked : all) write(looked);
  json.end_array().end_object();
  return json.text() + "\n";
}

std::string text_of(const std::vector<Looked>& all) {
  std::vector<Info> found;
  for (const Looked& looked : all) {
    if (looked.found) found.push_back(*looked.found);
  }
  if (found.empty()) return "";
  return all.size() == 1 ? facts_of(found.front()) : table_of(found);
}

}  // namespace

Action add_info(CLI::App& app) {
  const auto words = add_file_words(app, true);
  return [words](const Call&) {
    const InfoOptions options = info_options(*words);
    std::vector<Looked> all;
    int code = kDone;
    for (const std::string& file : words->files) {
      all.push_back({.path = file, .found = {}, .error = {}});
      try {
        all.back().found = info(file, options);
      } catch (...) {  // the other files are still reported
        const Failure failure = failure_now();
        tell("info", failure.message);
        all.back().error = failure.message;
        code = std::max(code, failure.code);
      }
    }
    print(words->json ? json_of(all) : text_of(all));
    return code;
  };
}

}  // namespace lowtide::cli
