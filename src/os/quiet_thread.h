// quiet_thread.h - starts threads, including quiet ones that the rest of the process does not
// notice: no signal is delivered to them, so no handler of the program runs there.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace lowtide {

inline constexpr const char* kNoThreadHint =
    "the limit on processes and threads (ulimit -u, pids.max of the cgroup) is reached";

// `what` becomes part of the IoError that is thrown if no thread can be started: "cannot start a
// reader thread: Resource temporarily unavailable; " and kNoThreadHint.
[[nodiscard]] std::thread start_thread(const std::string& what, std::function<void()> body);
[[nodiscard]] std::thread start_quiet_thread(const std::string& what, std::function<void()> body);

}  // namespace lowtide
