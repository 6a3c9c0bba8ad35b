#include "meter/recording.h"

#include <utility>

#include "meter/sums.h"

namespace lowtide {

Recording recording_of(Trace trace) {
  return Recording(
      std::make_shared<const Recording::Impl>(Recording::Impl{.trace = std::move(trace)}));
}

Recording::Recording(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

std::vector<std::string> Recording::command() const {
  return impl_->trace.command;
}
std::optional<int> Recording::exit_code() const {
  return impl_->trace.ending ? impl_->trace.ending->exit_code : std::nullopt;
}
double Recording::seconds() const {
  return seconds_of(impl_->trace);
}
std::size_t Recording::readings() const {
  return impl_->trace.readings.size();
}

double Recording::cost() const {
  const double run_seconds = seconds();
  if (!impl_->trace.ending || run_seconds <= 0) return 0;
  return impl_->trace.ending->cost_cpu_seconds / run_seconds;
}

bool Recording::cut() const {
  // A .dat of mprof never has an ending or the pid of its root, so nothing is missing there.
  const bool ends = impl_->trace.ending || impl_->trace.root_pid == 0;
  return impl_->trace.cut || !ends;
}

}  // namespace lowtide
