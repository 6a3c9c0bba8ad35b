// process_id.h - which process this is, at the price of a memory read.
#pragma once

namespace lowtide {

// Also correct in the child of a fork. Any thread.
[[nodiscard]] int process_id();

}  // namespace lowtide
