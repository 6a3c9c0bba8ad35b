// Plain tokens without a header, as nanoGPT's prepare.py writes them. They are uint16 unless the
// caller gives another dtype. The token files of OLMo and Dolma have the same bytes: they are named
// .npy, but np.memmap writes them without NumPy's header.
//
// Refuses a size that is not a multiple of the token size, and, without a dtype, a file whose first
// 64 KiB look like uint32 tokens.
#include <array>
#include <vector>

#include "lowtide/error.h"
#include "token_format/token_output.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kSampleBytes = 64 * 1024;
constexpr std::uint16_t kMostHighWord = 8;  // tokens stay below 8 * 65536 in every vocabulary

// Read as uint16, every second word of uint32 tokens is close to zero. Text stored as uint16 never
// looks like that for 64 KiB. If all words are close to zero, both readings are possible and uint16
// wins.
bool looks_like_uint32(const TokenFile& file) {
  if (file.file_bytes % sizeof(std::uint32_t) != 0) return false;
  std::vector<std::byte> sample(std::min(file.file_bytes, kSampleBytes));
  file.read(0, sample);
  bool has_large = false;
  for (std::size_t at = 0; at < sample.size(); at += sizeof(std::uint32_t)) {
    if (load_little<std::uint16_t>(&sample[at + sizeof(std::uint16_t)]) >= kMostHighWord) {
      return false;
    }
    has_large = has_large || load_little<std::uint16_t>(&sample[at]) >= kMostHighWord;
  }
  return has_large;
}

TokenLayout open_plain(const TokenSource& source) {
  const TokenFile& file = source.file;
  const DType dtype = source.given.dtype.value_or(DType::parse("<u2"));
  if (file.file_bytes % dtype.itemsize_bytes != 0) {
    throw FormatError(file.path + ": expected a multiple of " +
                      std::to_string(dtype.itemsize_bytes) + " bytes for tokens of dtype " +
                      dtype.descr() + ", found " + std::to_string(file.file_bytes) +
                      " bytes; give another dtype");
  }
  if (!source.given.dtype && looks_like_uint32(file)) {
    throw FormatError(file.path +
                      ": expected uint16 tokens, found what looks like uint32 (every second 16-bit "
                      "word at the start is below 8); give the dtype explicitly, uint32 or uint16");
  }
  return one_extent(file.path, dtype, 0, file.file_bytes / dtype.itemsize_bytes);
}

}  // namespace

namespace nanogpt {
namespace {

constexpr TokenOutput kOutput{.types = kAllTokenTypes};

// Takes every file that no other format recognises.
bool matches(const TokenSource&) {
  return true;
}

}  // namespace

extern const TokenFormat kFormat;  // for the list of tokens.cc
constinit const TokenFormat kFormat{.word = "nanogpt",
                                    .alias = "raw",
                                    .suffix = ".bin",
                                    .has_header = false,
                                    .matches = matches,
                                    .open = open_plain,
                                    .output = &kOutput};

}  // namespace nanogpt

namespace olmo {
namespace {

constexpr std::string_view kSuffix = ".npy";

// As OLMo-core's NumpyDatasetDType lists them.
constexpr std::array kTypes{TokenType::u8, TokenType::u16, TokenType::u32, TokenType::u64};
constexpr TokenOutput kOutput{.types = kTypes, .needs_suffix = true};

// Asked only after no format recognised the bytes.
bool matches(const TokenSource& source) {
  return source.file.path.ends_with(kSuffix);
}

}  // namespace

extern const TokenFormat kFormat;  // for the list of tokens.cc
constinit const TokenFormat kFormat{.word = "olmo",
                                    .suffix = kSuffix,
                                    .has_header = false,
                                    .matches = matches,
                                    .open = open_plain,
                                    .output = &kOutput};

}  // namespace olmo
}  // namespace lowtide
