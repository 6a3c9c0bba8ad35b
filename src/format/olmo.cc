// The token files of OLMo and Dolma. They are named .npy, but np.memmap writes them without NumPy's
// header; the bytes are as in nanoGPT's files. Recognised by the name, after no format recognised
// the bytes.
#include <array>

#include "format/nanogpt.h"
#include "format/token_output.h"

namespace lowtide::olmo {
namespace {

constexpr std::string_view kSuffix = ".npy";

// As OLMo-core's NumpyDatasetDType lists them.
constexpr std::array kTypes{TokenType::u8, TokenType::u16, TokenType::u32, TokenType::u64};
constexpr TokenOutput kOutput{.types = kTypes, .needs_suffix = true};

bool matches(const TokenSource& source) {
  return source.file.path.ends_with(kSuffix);
}

}  // namespace

extern const TokenFormat kFormat;  // for the list of tokens.cc
constinit const TokenFormat kFormat{.word = "olmo",
                                    .suffix = kSuffix,
                                    .has_header = false,
                                    .matches = matches,
                                    .open = nanogpt::open,
                                    .output = &kOutput};

}  // namespace lowtide::olmo
