#include "files.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "lowtide/bytes.h"
#include "lowtide/command/build.h"
#include "lowtide/command/terminal.h"
#include "terminal.h"

namespace lowtide::cli {
namespace {

// "1000,162", "(1000, 162)", "1000x162".
std::vector<std::uint64_t> parse_shape(std::string_view text) {
  std::vector<std::uint64_t> shape;
  std::string entry;
  for (const char c : std::string(text) + ",") {
    if (c == '(' || c == ')' || c == ' ') continue;
    if (c != ',' && c != 'x') {
      entry += c;
    } else if (!entry.empty()) {
      shape.push_back(parse_count(entry, "--shape"));
      entry.clear();
    }
  }
  if (shape.empty()) {
    throw std::invalid_argument("--shape: expected numbers such as 1000,162, found \"" +
                                std::string(text) + "\"");
  }
  return shape;
}

void write_arrays(JsonWriter* json, const std::vector<ArrayInfo>& arrays) {
  json->key("arrays").begin_array();
  for (const ArrayInfo& one : arrays) {
    json->begin_object().field("key", one.key);
    if (one.fault.empty()) {
      json->field("dtype", one.dtype)
          .field("shape", one.shape)
          .field("order", one.fortran_order ? "F" : "C")
          .field("bytes", one.bytes);
    } else {
      json->field("error", one.fault);
    }
    json->end_object();
  }
  json->end_array();
}

}  // namespace

std::uint64_t parse_count(std::string_view text, const std::string& option) {
  std::uint64_t value = 0;
  const auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (err == std::errc() && end == text.data() + text.size() && !text.empty()) return value;
  throw std::invalid_argument(option + ": expected a whole number, found \"" + std::string(text) +
                              "\"");
}

std::uint64_t parse_size(std::string_view text, const std::string& option) {
  try {
    return parse_bytes(text);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(option + ": " + error.what());
  }
}

double parse_seconds(std::string_view text, const std::string& option) {
  double value = 0;
  const auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (err == std::errc() && end == text.data() + text.size() && std::isfinite(value)) return value;
  throw std::invalid_argument(option + ": expected a number of seconds, found \"" +
                              std::string(text) + "\"");
}

void add_layout_words(CLI::App& app, FileWords* words, const char* format_option) {
  app.add_option("--dtype", words->dtype,
                 "Element type of a file without a header, such as float32")
      ->type_name("TYPE");
  app.add_option("--shape", words->shape, "Shape of an array without a header, such as 1000,162")
      ->type_name("N,N");
  app.add_option("--offset", words->offset, "Byte at which the data starts")->type_name("BYTES");
  app.add_option("--order", words->order, "Memory order: C (by rows) or F (by columns)")
      ->type_name("C|F");
  app.add_option("--key", words->key,
                 "Which array of a file that contains several, or which column of an MDS folder")
      ->type_name("NAME");
  app.add_option(format_option, words->format, "Format of the file: " + either(format_words()))
      ->type_name("WORD");
  app.add_flag("--tokens", words->tokens, "Read the file as tokens, not as an array");
}

std::shared_ptr<FileWords> add_file_words(CLI::App& app, bool several) {
  auto words = std::make_shared<FileWords>();
  CLI::Option* const files =
      app.add_option(
             "FILE", words->files,
             several
                 ? "A file, a folder or a quoted pattern; the files of a folder or pattern form "
                   "one data set"
                 : "An array, a token file, or any other file")
          ->required()
          ->type_name("");
  if (!several) files->expected(1);
  add_layout_words(app, words.get(), "--format");
  app.add_flag("--json", words->json, "Print one JSON object instead of text");
  return words;
}

InfoOptions info_options(const FileWords& words) {
  InfoOptions options;
  if (words.tokens) options.kind = FileKind::tokens;
  if (!words.dtype.empty()) options.dtype = words.dtype;
  if (!words.shape.empty()) options.shape = parse_shape(words.shape);
  if (!words.offset.empty()) options.offset_bytes = parse_count(words.offset, "--offset");
  if (!words.format.empty()) options.format = words.format;
  if (!words.key.empty()) options.key = words.key;
  if (!words.order.empty()) {
    if (words.order != "C" && words.order != "F") {
      throw std::invalid_argument("--order: expected C or F, found \"" + words.order + "\"");
    }
    options.fortran_order = words.order == "F";
  }
  return options;
}

void write_info(JsonWriter* json, const Info& found) {
  json->begin_object()
      .field("path", found.path)
      .field("kind", file_kind_word(found.kind))
      .field("format", found.format);
  if (found.kind == FileKind::tokens) {
    json->field("dtype", found.dtype)
        .field("tokens", found.shape.at(0))
        .field("documents", found.documents);
  } else if (found.kind == FileKind::sparse) {
    json->field("dtype", found.dtype).field("rows", found.shape.at(0)).field("nnz", found.values);
  } else if (has_several_arrays(found)) {
    json->key("dtype").null().key("shape").null().key("order").null();
  } else {
    json->field("dtype", found.dtype)
        .field("shape", found.shape)
        .field("order", found.fortran_order ? "F" : "C");
  }
  if (!found.arrays.empty()) write_arrays(json, found.arrays);
  json->field("bytes", found.bytes)
      .field("shards", found.shards)
      .field("cached", found.cached_bytes);
  json->key("cached_unknown");
  found.cached_bytes ? json->null() : json->value(found.cached_unknown);
  json->key("files").begin_array();
  for (const FileInfo& file : found.files) {
    json->begin_object()
        .field("path", file.path)
        .field("bytes", file.bytes)
        .field("cached", file.cached_bytes)
        .end_object();
  }
  json->end_array().end_object();
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text = "(";
  for (const std::uint64_t axis : shape) {
    if (text.size() > 1) text += " ";
    text += std::to_string(axis) + ",";
  }
  if (shape.size() > 1) text.pop_back();
  return text + ")";
}

std::string shape_text(const Info& found) {
  if (found.kind == FileKind::tokens) return grouped(found.shape.at(0));
  if (found.kind == FileKind::sparse) return grouped(found.shape.at(0)) + " rows";
  if (has_several_arrays(found)) return grouped(found.arrays.size()) + " arrays";
  return shape_text(found.shape);
}

}  // namespace lowtide::cli
