#include "meter/recording.h"

#include <utility>

namespace lowtide {

Recording::Recording(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

}  // namespace lowtide
