// recording.h - the implementation of a Recording.
#pragma once

#include "lowtide/profile.h"
#include "meter/trace.h"

namespace lowtide {

struct Recording::Impl {
  Trace trace;
};

[[nodiscard]] Recording recording_of(Trace trace);

}  // namespace lowtide
