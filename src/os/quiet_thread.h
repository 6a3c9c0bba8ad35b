// quiet_thread.h - how threads are started, also ones that the rest of the process does not notice:
// no signal is delivered to them, so no handler of the program runs there. Also what a fork does to
// them.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace lowtide {

inline constexpr const char* kNoThreadHint =
    "the limit on processes and threads (ulimit -u, pids.max of the cgroup) is reached";

// `what` stands in the IoError that is thrown where no thread can be had: "cannot start a reader
// thread: Resource temporarily unavailable; " and kNoThreadHint.
[[nodiscard]] std::thread start_thread(const std::string& what, std::function<void()> body);
[[nodiscard]] std::thread start_quiet_thread(const std::string& what, std::function<void()> body);

// Calls `before` in a thread that is about to fork, then one of the others: for a lock that the
// child must find open. For good; throws std::bad_alloc.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

}  // namespace lowtide
