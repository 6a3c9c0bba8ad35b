#include "format/tokens.h"

#include <array>
#include <span>
#include <stdexcept>
#include <string_view>

#include "core/checked.h"
#include "core/quote.h"
#include "format/foreign.h"
#include "format/llmc.h"
#include "format/megatron.h"
#include "format/nanogpt.h"
#include "format/npy.h"
#include "format/olmo.h"
#include "format/token_source.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

bool matches_npy(const TokenSource& source) {
  return npy::has_magic(source.start);
}

TokenLayout open_npy(const TokenSource& source) {
  const TokenFile& file = source.file;
  std::vector<std::byte> header(
      std::min(npy::header_bytes(source.start, file.path), file.file_bytes));
  file.read(0, header);
  const Layout layout = npy::parse(header, file.file_bytes, file.path);
  check_token_dtype(layout.dtype, file.path);
  if (layout.shape.size() != 1) {
    throw FormatError(file.path + ": expected tokens on one axis, found shape " +
                      shape_text(layout.shape));
  }
  check_given_dtype(source.given, layout.dtype, file.path);
  return one_run("npy", file.path, layout.dtype, layout.data_offset_bytes, layout.shape[0]);
}

struct TokenFormat {
  std::string_view word;
  bool headerless;
  bool (*matches)(const TokenSource& source);
  TokenLayout (*open)(const TokenSource& source);
};

// The first format that matches opens the file. Headers come before names; nanogpt accepts every
// file and comes last.
constexpr TokenFormat kTokenFormats[] = {
    {"megatron", false, megatron::matches, megatron::open},
    {"llmc", false, llmc::matches, llmc::open},
    {"npy", false, matches_npy, open_npy},
    {"olmo", true, olmo::matches, olmo::open},
    {"nanogpt", true, nanogpt::matches, nanogpt::open},
};

const TokenFormat& format_named(std::string_view word) {
  if (word == "raw") word = "nanogpt";
  const auto* const known = std::ranges::find(kTokenFormats, word, &TokenFormat::word);
  if (known != std::end(kTokenFormats)) return *known;
  std::string text = "format: expected one of ";
  for (const TokenFormat& format : kTokenFormats) text += std::string(format.word) + ", ";
  throw std::invalid_argument(text + "raw (an alias of nanogpt), found " + excerpt(word));
}

// A headerless format accepts any bytes and would read a header as if it were tokens.
void check_no_header(const TokenFormat& asked, const TokenSource& source) {
  const OpenBeside nothing = [](const std::string&) { return std::nullopt; };
  const TokenSource alone{source.file, source.start, nothing, source.given};
  for (const TokenFormat& format : kTokenFormats) {
    if (format.headerless || !format.matches(alone)) continue;
    throw FormatError(source.file.path + ": expected tokens without a header for format " +
                      excerpt(asked.word) + ", found the header of " + excerpt(format.word));
  }
}

const TokenFormat& choose_format(const TokenFormat* asked, const TokenSource& source) {
  if (asked == nullptr) {
    return *std::ranges::find_if(kTokenFormats,
                                 [&](const TokenFormat& f) { return f.matches(source); });
  }
  if (asked->headerless) check_no_header(*asked, source);
  return *asked;
}

std::uint64_t sum_of(const std::vector<TokenRun>& runs, const std::string& path) {
  std::uint64_t sum = 0;
  for (const TokenRun& run : runs) {
    if (checked_add(sum, run.tokens, &sum) && sum < kMostTokens) continue;
    throw FormatError(path + ": expected fewer than 2^60 tokens, found more");
  }
  return sum;
}

}  // namespace

TokenLayout open_token_layout(const TokenFile& file, const OpenBeside& beside,
                              const TokenGiven& given) {
  const TokenFormat* const asked = given.format ? &format_named(*given.format) : nullptr;
  if (given.dtype) check_token_dtype(*given.dtype, file.path);
  if (file.file_bytes == 0) throw FormatError(file.path + ": expected data, found an empty file");
  std::array<std::byte, kTokenStartBytes> room;
  const TokenSource source{file, read_token_start(file, &room), beside, given};
  const TokenFormat& format = choose_format(asked, source);
  if (format.headerless && !given.dtype) {
    refuse_foreign(file.path, file.file_bytes, file.read, "tokens");
  }
  TokenLayout layout = format.open(source);
  layout.tokens = sum_of(layout.runs, file.path);
  return layout;
}

}  // namespace lowtide
