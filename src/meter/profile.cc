#include "lowtide/profile.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "meter/recording.h"
#include "meter/watch.h"
#include "os/limits.h"
#include "os/process.h"

namespace lowtide {
namespace {

// The profiles that watch this very process. A forked child starts with an instance of its own: a
// thread that does not exist in the child may have held the lock of the parent's instance.
struct Watching {
  int process = 0;
  std::mutex mutex;
  std::vector<Watch*> watches;
};

std::atomic<Watching*> watching{nullptr};
std::atomic<int> watched_process{0};  // the process that has at least one profile; 0: none

Watching& watching_now() {
  Watching* now = watching.load();
  while (now == nullptr || now->process != process_id()) {
    auto* const fresh = new Watching;  // never freed: another thread may be using it for a mark
    fresh->process = process_id();
    if (watching.compare_exchange_strong(now, fresh)) return *fresh;
    delete fresh;
  }
  return *now;
}

void begin(Watch* watch) {
  Watching& all = watching_now();
  const std::lock_guard lock(all.mutex);
  all.watches.push_back(watch);
  watched_process = all.process;
}

void end(const Watch* watch) {
  Watching& all = watching_now();
  const std::lock_guard lock(all.mutex);
  std::erase(all.watches, watch);
  if (all.watches.empty()) watched_process = 0;
}

Watch::Options watch_options(const ProfileOptions& options) {
  if (options.pid < 0) {
    throw std::invalid_argument("profile: pid " + std::to_string(options.pid) +
                                " is not a process");
  }
  if (!(options.interval_s >= 0) || options.interval_s > 3600) {
    throw std::invalid_argument(
        "profile: expected an interval from 0 (adaptive) to 3600 seconds, found " +
        std::to_string(options.interval_s));
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
  explicit Impl(const ProfileOptions& options) : watch(watch_options(options)) {
    if (watch.root_pid() == process_id()) begin(&watch);
  }
  ~Impl() { end(&watch); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // In a forked child the thread does not exist and its locks may be held for ever, so the parent's
  // objects are left alone.
  static void let_go(std::unique_ptr<Impl> impl) {
    if (impl && !impl->watch.is_ours()) (void)impl.release();
  }

  Watch watch;
};

Profile::Profile(const ProfileOptions& options) : impl_(std::make_unique<Impl>(options)) {}

Profile::~Profile() {
  Impl::let_go(std::move(impl_));
}

Profile::Profile(Profile&&) noexcept = default;

Profile& Profile::operator=(Profile&& other) noexcept {
  Impl::let_go(std::exchange(impl_, std::move(other.impl_)));
  return *this;
}

void Profile::mark(const std::string& text) {
  if (impl_->watch.is_ours()) impl_->watch.mark(text);
}

void Profile::stop(std::optional<int> exit_code) {
  if (!impl_->watch.is_ours()) return;
  end(&impl_->watch);
  impl_->watch.stop(exit_code);
}

bool Profile::ended() const {
  return impl_->watch.ended();
}

Recording Profile::recording() const {
  return recording_of(impl_->watch.is_ours() ? impl_->watch.trace() : Trace{});
}

void mark_profile(const std::string& text) {
  if (!profile_running()) return;
  Watching& all = watching_now();
  const std::lock_guard lock(all.mutex);
  for (Watch* const watch : all.watches) watch->mark(text);
}

void mark_step(std::uint64_t epoch, std::uint64_t step) {
  if (!profile_running()) return;
  Watching& all = watching_now();
  const std::lock_guard lock(all.mutex);
  for (Watch* const watch : all.watches) watch->mark_step(epoch, step);
}

bool profile_running() noexcept {
  const int process = watched_process.load();
  return process != 0 && process == process_id();
}

}  // namespace lowtide
