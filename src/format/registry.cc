#include "format/registry.h"

#include <algorithm>
#include <vector>

#include "format/foreign.h"
#include "format/npy.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

struct Source {
  const std::string& path;
  std::uint64_t file_bytes;
  const ReadStart& read;
  std::span<const std::byte> start;  // the first kStartBytes, or all of a shorter file
};

constexpr std::uint64_t kStartBytes = npy::kPreambleBytes;  // enough for every format's magic

[[noreturn]] void fail_given(const std::string& path, const std::string& what,
                             const std::string& given, const std::string& header) {
  throw FormatError(path + ": " + what + " " + given + " was given, but the header says " + header);
}

void check_agrees(const Layout& layout, const raw::Description& given, const std::string& path) {
  const auto order = [](bool fortran) { return std::string(fortran ? "'F'" : "'C'"); };
  if (given.dtype && *given.dtype != layout.dtype) {
    fail_given(path, "dtype", given.dtype->descr(), layout.dtype.descr());
  }
  if (given.shape && *given.shape != layout.shape) {
    fail_given(path, "shape", shape_text(*given.shape), shape_text(layout.shape));
  }
  // On one axis both orders are the same bytes, so either word is true.
  const bool has_order = layout.shape.size() > 1;
  if (has_order && given.fortran_order && *given.fortran_order != layout.fortran_order) {
    fail_given(path, "order", order(*given.fortran_order), order(layout.fortran_order));
  }
  if (given.offset_bytes && *given.offset_bytes != layout.data_offset_bytes) {
    fail_given(path, "offset", std::to_string(*given.offset_bytes),
               std::to_string(layout.data_offset_bytes));
  }
}

Layout open_npy(const Source& source, const raw::Description& given) {
  const std::uint64_t header_bytes = npy::header_bytes(source.start, source.path);
  // A truncated file is read as far as it goes: npy::parse then names the byte where it ends.
  std::vector<std::byte> header(std::min(header_bytes, source.file_bytes));
  source.read(0, header);
  Layout layout = npy::parse(header, source.file_bytes, source.path);
  check_agrees(layout, given, source.path);
  return layout;
}

Layout open_raw(const Source& source, const raw::Description& given) {
  // A dtype is the caller's statement that the bytes are raw data, whatever they look like.
  if (!given.dtype) refuse_foreign(source.path, source.file_bytes, source.read, "an array");
  return raw::describe(given, source.file_bytes, source.path);
}

bool always(std::span<const std::byte>) {
  return true;
}

struct ArrayFormat {
  std::string_view word;
  bool has_header;  // otherwise the caller describes the file
  bool (*matches)(std::span<const std::byte> start);
  Layout (*open)(const Source& source, const raw::Description& given);
};

// The first format that matches opens the file. raw accepts every file, so it must stay last.
constexpr ArrayFormat kArrayFormats[] = {
    {npy::kWord, true, npy::has_magic, open_npy},
    {raw::kWord, false, always, open_raw},
};

}  // namespace

Layout open_layout(const std::string& path, std::uint64_t file_bytes, const ReadStart& read,
                   const raw::Description& given) {
  if (file_bytes == 0) throw FormatError(path + ": expected data, found an empty file");
  std::vector<std::byte> start(std::min(file_bytes, kStartBytes));
  read(0, start);
  const Source source{path, file_bytes, read, start};
  if (given.headerless) return open_raw(source, given);
  const auto* const format =
      std::ranges::find_if(kArrayFormats, [&](const ArrayFormat& f) { return f.matches(start); });
  return format->open(source, given);
}

std::vector<std::string_view> array_words() {
  std::vector<std::string_view> words;
  for (const ArrayFormat& format : kArrayFormats) words.push_back(format.word);
  return words;
}

bool has_array_header(std::span<const std::byte> start) {
  return std::ranges::any_of(
      kArrayFormats, [&](const ArrayFormat& f) { return f.has_header && f.matches(start); });
}

bool has_header(std::string_view format) {
  const auto* const known = std::ranges::find(kArrayFormats, format, &ArrayFormat::word);
  return known != std::end(kArrayFormats) && known->has_header;
}

}  // namespace lowtide
