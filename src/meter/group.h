// group.h - the memory group of a process as part of a Reading.
#pragma once

#include "meter/reading.h"
#include "system/text_file.h"

namespace lowtide {

// Every figure is unknown, with the reason, if the process has no readable group.
[[nodiscard]] GroupReading read_group(const SystemRoot& root, int pid);

}  // namespace lowtide
