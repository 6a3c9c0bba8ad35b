// The token files of llm.c and modded-nanogpt: a header of 256 int32 (magic, version, number of
// tokens, then zeros), followed by uint16 or uint32 tokens, depending on the magic.
//
// Recognises the magic, including that of an evaluation file, which it refuses by name. Refuses
// another magic, a version that does not go with the magic, a negative count, and a file that is
// not exactly as long as the count says.
#include <array>
#include <limits>

#include "lowtide/error.h"
#include "token_format/token_output.h"

namespace lowtide::llmc {
namespace {

constexpr std::uint64_t kHeaderBytes = 1024;

struct MagicKind {
  std::int32_t magic;
  std::int32_t version;
  const char* dtype;
};

constexpr MagicKind kMagicKinds[] = {
    {20240520, 1, "<u2"},  // GPT-2
    {20240801, 7, "<u4"},  // Llama 3
};
constexpr std::int32_t kEvaluationMagic = 20240522;

constexpr std::size_t kVersionAt = 4;
constexpr std::size_t kCountAt = 8;
static_assert(kCountAt + sizeof(std::int32_t) <= kTokenStartBytes);

const MagicKind* kind_of(std::int32_t magic) {
  const auto* const at = std::ranges::find(kMagicKinds, magic, &MagicKind::magic);
  return at == std::end(kMagicKinds) ? nullptr : at;
}

bool has_word(std::span<const std::byte> start) {
  return start.size() >= sizeof(std::int32_t);
}

const MagicKind& checked_kind(const TokenSource& source) {
  const std::string& path = source.file.path;
  const std::int32_t magic =
      has_word(source.start) ? load_little<std::int32_t>(source.start.data()) : 0;
  if (magic == kEvaluationMagic) {
    throw FormatError(path + ": expected tokens, found an llm.c evaluation file (magic " +
                      std::to_string(magic) + "), which holds questions and their answers");
  }
  const MagicKind* const kind = kind_of(magic);
  if (kind == nullptr) {
    throw FormatError(path + ": expected the llm.c magic 20240520 or 20240801, found " +
                      (has_word(source.start) ? std::to_string(magic) : "a file too short for it"));
  }
  return *kind;
}

bool matches(const TokenSource& source) {
  if (!has_word(source.start)) return false;
  const auto magic = load_little<std::int32_t>(source.start.data());
  return magic == kEvaluationMagic || kind_of(magic) != nullptr;
}

TokenLayout open(const TokenSource& source) {
  const std::string& path = source.file.path;
  const MagicKind& kind = checked_kind(source);
  if (source.file.file_bytes < kHeaderBytes) {
    throw FormatError(path + ": expected an llm.c header of " + std::to_string(kHeaderBytes) +
                      " bytes, found a file of " + std::to_string(source.file.file_bytes));
  }
  const auto version = load_little<std::int32_t>(&source.start[kVersionAt]);
  if (version != kind.version) {
    throw FormatError(path + ": expected version " + std::to_string(kind.version) +
                      " with the llm.c magic " + std::to_string(kind.magic) + ", found " +
                      std::to_string(version));
  }
  const auto count = load_little<std::int32_t>(&source.start[kCountAt]);
  if (count < 0) {
    throw FormatError(path + ": expected 0 tokens or more in the llm.c header, found " +
                      std::to_string(count));
  }
  const DType dtype = DType::parse(kind.dtype);
  const auto tokens = static_cast<std::uint64_t>(count);
  const std::uint64_t expected_bytes = kHeaderBytes + dtype.itemsize_bytes * tokens;
  if (source.file.file_bytes != expected_bytes) {
    throw FormatError(path + ": expected 1024 + " + std::to_string(dtype.itemsize_bytes) + " * " +
                      std::to_string(tokens) + " = " + std::to_string(expected_bytes) +
                      " bytes according to the count in the llm.c header, found " +
                      std::to_string(source.file.file_bytes));
  }
  check_given_dtype(source.given, dtype, path);
  return one_extent(path, dtype, kHeaderBytes, tokens);
}

constexpr std::array kTypes{TokenType::u16, TokenType::u32};

void store_header(const TokenTotals& totals, std::span<std::byte> out) {
  const auto* const kind = std::ranges::find_if(kMagicKinds, [&](const MagicKind& known) {
    return DType::parse(known.dtype) == totals.dtype;
  });
  std::ranges::fill(out, std::byte{0});
  store_little(kind->magic, out.data());
  store_little(kind->version, &out[kVersionAt]);
  store_little(static_cast<std::int32_t>(totals.tokens), &out[kCountAt]);
}

constexpr TokenOutput kOutput{.types = kTypes,
                              .most_tokens = std::numeric_limits<std::int32_t>::max(),
                              .header_bytes = kHeaderBytes,
                              .store_header = store_header};

}  // namespace

extern const TokenFormat kFormat;  // for the list of tokens.cc
constinit const TokenFormat kFormat{.word = "llmc",
                                    .suffix = ".bin",
                                    .eot_begins = true,
                                    .matches = matches,
                                    .open = open,
                                    .output = &kOutput};

}  // namespace lowtide::llmc
