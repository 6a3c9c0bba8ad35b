#include "format/olmo.h"

#include "format/nanogpt.h"

namespace lowtide::olmo {
namespace {

constexpr std::string_view kSuffix = ".npy";

bool matches(const TokenSource& source) {
  return source.file.path.ends_with(kSuffix);
}

}  // namespace

constinit const TokenFormat kFormat{.word = "olmo",
                                    .suffix = kSuffix,
                                    .has_header = false,
                                    .matches = matches,
                                    .open = nanogpt::open};

}  // namespace lowtide::olmo
