// quiet_thread.h - threads that the rest of the process does not notice: no signal is delivered to
// them, so no handler of the program runs there. Also what a fork does to them.
#pragma once

#include <functional>
#include <thread>

namespace lowtide {

// Throws std::system_error where no thread can be had.
[[nodiscard]] std::thread start_quiet_thread(std::function<void()> body);

// Calls `before` in a thread that is about to fork, then one of the others: for a lock that the
// child must find open. For good; throws std::bad_alloc.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

}  // namespace lowtide
