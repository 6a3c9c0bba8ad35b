// recording.h - what is behind a Recording.
#pragma once

#include "lowtide/profile.h"
#include "meter/trace.h"

namespace lowtide {

struct Recording::Impl {
  Trace trace;
};

}  // namespace lowtide
