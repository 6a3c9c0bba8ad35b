#include "format/olmo.h"

#include "format/nanogpt.h"

namespace lowtide::olmo {

bool matches(const TokenSource& source) {
  return source.file.path.ends_with(".npy");
}

TokenLayout open(const TokenSource& source) {
  return nanogpt::open_as("olmo", source);
}

}  // namespace lowtide::olmo
