#include "lowtide/profile.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <utility>

#include "core/mutex.h"
#include "core/step_hook.h"
#include "lowtide/bytes.h"
#include "meter/recording.h"
#include "meter/watch.h"
#include "os/per_process.h"
#include "system/process.h"

namespace lowtide {
namespace {

// The profiles that watch this very process.
struct Watching {
  Mutex mutex;
  std::vector<Watch*> watches LOWTIDE_GUARDED_BY(mutex);
  std::atomic<bool> any = false;
};

// Made before main() starts a thread that could fork while it is made. Never destroyed: another
// thread may be using it for a mark while the process exits.
PerProcess<Watching>& watching = *new PerProcess<Watching>;

void begin(Watch* watch) {
  Watching& all = watching.get();
  const MutexLock lock(all.mutex);
  all.watches.push_back(watch);
  all.any = true;
  step_hook = &mark_step;
}

void end(const Watch* watch) {
  Watching& all = watching.get();
  const MutexLock lock(all.mutex);
  std::erase(all.watches, watch);
  all.any = !all.watches.empty();
  if (!all.any) step_hook = nullptr;
}

Watch::Options watch_options(const ProfileOptions& options) {
  if (options.pid < 0) {
    throw std::invalid_argument("profile: pid must be above 0, or 0 for this process, not " +
                                std::to_string(options.pid));
  }
  if (!(options.interval_s >= 0) || options.interval_s > 3600) {
    throw std::invalid_argument(
        "profile: expected an interval from 0 (adaptive) to 3600 seconds, found " +
        format_fixed(options.interval_s, 3));
  }
  Watch::Options made;
  made.sampler.pid = options.pid;
  made.sampler.children = options.children;
  made.sampler.interval_s = options.interval_s;
  made.sampler.watch_files = options.watch_files;
  made.command = options.command;
  if (made.command.empty() && options.pid != 0) made.command = read_command_line({}, options.pid);
  made.trace_path = options.trace_path;
  made.on_reading = options.on_reading;
  return made;
}

}  // namespace

struct Profile::Impl {
  explicit Impl(const ProfileOptions& options)
      : watch([options] { return std::make_unique<Watch>(watch_options(options)); }) {
    Watch& ours = watch.get();
    if (ours.root_pid() == process_id()) begin(&ours);
  }
  ~Impl() {
    if (const Watch* const ours = watch.find()) end(ours);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // A child of a fork never makes one: it has no profile.
  PerProcess<Watch> watch;
};

Profile::Profile(const ProfileOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Profile::~Profile() = default;
Profile::Profile(Profile&&) noexcept = default;
Profile& Profile::operator=(Profile&&) noexcept = default;

void Profile::mark(const std::string& text) {
  if (Watch* const ours = impl_->watch.find()) ours->mark(text);
}

void Profile::stop(std::optional<int> exit_code) {
  Watch* const ours = impl_->watch.find();
  if (ours == nullptr) return;
  end(ours);
  ours->stop(exit_code);
}

bool Profile::ended() const {
  const Watch* const ours = impl_->watch.find();
  return ours != nullptr && ours->ended();
}

Recording Profile::recording() const {
  const Watch* const ours = impl_->watch.find();
  return recording_of(ours != nullptr ? ours->trace() : Trace{});
}

void mark_profile(const std::string& text) {
  if (!profile_running()) return;
  Watching& all = watching.get();
  const MutexLock lock(all.mutex);
  for (Watch* const watch : all.watches) watch->mark(text);
}

void mark_step(std::uint64_t epoch, std::uint64_t step) {
  if (!profile_running()) return;
  Watching& all = watching.get();
  const MutexLock lock(all.mutex);
  for (Watch* const watch : all.watches) watch->mark_step(epoch, step);
}

bool profile_running() noexcept {
  const Watching* const all = watching.find();
  return all != nullptr && all->any;
}

}  // namespace lowtide
