#include "token_format/tokens.h"

#include <array>
#include <span>
#include <stdexcept>
#include <string_view>

#include "core/checked.h"
#include "core/quote.h"
#include "core/token_type.h"
#include "format/foreign.h"
#include "lowtide/error.h"
#include "token_format/token_source.h"

// Every token format, one line per format. The first one that matches opens the file, so headers
// come before names, and nanogpt, which accepts every file, comes last.
#define LOWTIDE_TOKEN_FORMATS(format)                                                            \
  format(megatron) format(llmc) format(npy_tokens) format(mds) format(litdata) format(datatrove) \
      format(olmo) format(nanogpt)

namespace lowtide {

#define LOWTIDE_DECLARE(name)       \
  namespace name {                  \
  extern const TokenFormat kFormat; \
  }
LOWTIDE_TOKEN_FORMATS(LOWTIDE_DECLARE)
#undef LOWTIDE_DECLARE

namespace {

#define LOWTIDE_ADDRESS(name) &name::kFormat,
constexpr const TokenFormat* kTokenFormats[] = {LOWTIDE_TOKEN_FORMATS(LOWTIDE_ADDRESS)};
#undef LOWTIDE_ADDRESS
#undef LOWTIDE_TOKEN_FORMATS

const TokenFormat& format_named(std::string_view word) {
  std::string words;
  for (const TokenFormat* const format : token_formats()) {
    if (word == format->word || (!word.empty() && word == format->alias)) return *format;
    words += std::string(format->word) + ", ";
  }
  std::string aliases;
  for (const TokenFormat* const format : token_formats()) {
    if (format->alias.empty()) continue;
    aliases += std::string(format->alias) + " (an alias of " + std::string(format->word) + "), ";
  }
  throw std::invalid_argument("format: expected one of " + words + aliases + "found " +
                              excerpt(word));
}

// A headerless format accepts any bytes and would read a header as if it were tokens.
void check_no_header(const TokenFormat& asked, const TokenSource& source) {
  const OpenBeside nothing = [](const std::string&) { return std::nullopt; };
  const TokenSource alone{source.file, source.start, nothing, source.given};
  for (const TokenFormat* const format : token_formats()) {
    if (!format->has_header || !format->matches(alone)) continue;
    throw FormatError(source.file.path + ": expected tokens without a header for format " +
                      excerpt(asked.word) + ", found the header of " + excerpt(format->word));
  }
}

const TokenFormat& choose_format(const TokenFormat* asked, const TokenSource& source) {
  if (asked == nullptr) {
    return **std::ranges::find_if(token_formats(),
                                  [&](const TokenFormat* f) { return f->matches(source); });
  }
  if (!asked->has_header) check_no_header(*asked, source);
  return *asked;
}

std::uint64_t sum_of(const std::vector<TokenExtent>& extents, const std::string& path) {
  std::uint64_t sum = 0;
  for (const TokenExtent& extent : extents) {
    if (checked_add(sum, extent.tokens, &sum) && sum < kMostTokens) continue;
    throw FormatError(path + ": expected fewer than 2^60 tokens, found more");
  }
  return sum;
}

}  // namespace

std::span<const std::byte> read_token_start(const TokenFile& file,
                                            std::array<std::byte, kTokenStartBytes>* room) {
  const std::span<std::byte> start =
      std::span(*room).first(std::min<std::uint64_t>(file.file_bytes, kTokenStartBytes));
  if (!start.empty()) file.read(0, start);
  return start;
}

void check_token_dtype(const DType& dtype, const std::string& path) {
  if (token_type(dtype)) return;
  const bool integer = dtype.kind == 'u' || dtype.kind == 'i';
  throw FormatError(path + ": expected tokens of " + (integer ? "a little-endian" : "an integer") +
                    " type such as uint16 or uint32, found dtype " + dtype.descr());
}

void check_given_dtype(const TokenGiven& given, const DType& header, const std::string& path) {
  if (!given.dtype || *given.dtype == header) return;
  throw FormatError(path + ": dtype " + given.dtype->descr() + " was given, but the header says " +
                    header.descr());
}

TokenLayout one_extent(const std::string& path, const DType& dtype, std::uint64_t offset_bytes,
                       std::uint64_t tokens) {
  TokenLayout layout;
  layout.data_path = path;
  layout.dtype = dtype;
  if (tokens > 0) {
    layout.extents.push_back({.offset_bytes = offset_bytes, .tokens = tokens, .first_sequence = 0});
  }
  return layout;
}

std::span<const TokenFormat* const> token_formats() {
  return kTokenFormats;
}

std::string_view token_suffix(std::string_view format) {
  return format_named(format).suffix;
}

bool eot_begins(std::string_view format) {
  return format_named(format).eot_begins;
}

std::vector<std::string_view> token_words() {
  std::vector<std::string_view> words;
  for (const TokenFormat* const format : token_formats()) words.push_back(format->word);
  return words;
}

bool looks_like_tokens(const TokenFile& file, const OpenBeside& beside, const TokenGiven& given) {
  if (file.file_bytes == 0) throw FormatError(file.path + ": expected data, found an empty file");
  std::array<std::byte, kTokenStartBytes> room;
  const TokenSource source{file, read_token_start(file, &room), beside, given};
  // An array of integers on one axis could be tokens, but its header says more than that.
  if (is_array_file(file.path, file.file_bytes, file.read)) return false;
  for (const TokenFormat* const format : token_formats()) {
    if (format->has_header && format->matches(source)) return true;
  }
  if (given.dtype && given.dtype->kind != 'u' && given.dtype->kind != 'i') return false;
  return std::ranges::any_of(token_formats(), [&](const TokenFormat* format) {
    return file.path.ends_with(format->suffix);
  });
}

TokenLayout open_token_layout(const TokenFile& file, const OpenBeside& beside,
                              const TokenGiven& given) {
  const TokenFormat* const asked = given.format ? &format_named(*given.format) : nullptr;
  if (given.dtype) check_token_dtype(*given.dtype, file.path);
  if (file.file_bytes == 0) throw FormatError(file.path + ": expected data, found an empty file");
  std::array<std::byte, kTokenStartBytes> room;
  const TokenSource source{file, read_token_start(file, &room), beside, given};
  const TokenFormat& format = choose_format(asked, source);
  if (given.key && !format.has_columns) {
    throw std::invalid_argument(file.path + ": key " + excerpt(*given.key) +
                                " was given, but files in format " + excerpt(format.word) +
                                " have no columns; leave the key out");
  }
  if (!format.has_header && !given.dtype) {
    refuse_foreign(file.path, file.file_bytes, file.read, "tokens");
  }
  TokenLayout layout = format.open(source);
  // Not by the format itself, so that no layout can differ from the entry in the list.
  layout.format = format.word;
  layout.eot_begins = format.eot_begins;
  layout.tokens = layout.records ? layout.records->tokens() : sum_of(layout.extents, file.path);
  return layout;
}

}  // namespace lowtide
