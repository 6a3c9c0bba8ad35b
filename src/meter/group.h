// group.h - the memory group of a process as part of a Reading.
#pragma once

#include "meter/reading.h"
#include "os/limits.h"
#include "os/told.h"

namespace lowtide {

[[nodiscard]] Figure to_figure(const ToldBytes& told);

// Every figure unknown, with the reason, where the process has no group that can be read.
[[nodiscard]] GroupReading read_group(const SystemRoot& root, int pid);

}  // namespace lowtide
