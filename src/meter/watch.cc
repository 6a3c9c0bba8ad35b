#include "meter/watch.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "core/clock.h"
#include "lowtide/error.h"
#include "meter/sums.h"
#include "os/quiet_thread.h"
#include "system/process.h"

namespace lowtide {
namespace {

constexpr double kNanosecond = 1e-9;
constexpr double kLeastBetweenSteps = 1, kStepsOnAPicture = 16;

// A mark for each of a million steps would make the chart unreadable and memory unbounded.
bool is_crowded(const std::vector<Mark>& marks, double now) {
  constexpr std::size_t kFew = 256;
  constexpr double kMostOnAPicture = 2000;
  return marks.size() >= kFew && now - marks.back().seconds < now / kMostOnAPicture;
}

}  // namespace

Watch::Watch(Options options)
    : began_ns_(now_ns()),
      sampler_(std::move(options.sampler)),
      root_pid_(sampler_.root_pid()),
      on_reading_(std::move(options.on_reading)) {
  trace_.command = std::move(options.command);
  trace_.root_pid = root_pid_;
  trace_.started_unix_ms = unix_time_ms();
  trace_.machine = machine_text();
  if (!options.trace_path.empty()) {
    file_ = std::make_unique<AppendFile>(options.trace_path);
    if (const int err = file_->append(header_line(trace_)); err != 0) {
      throw IoError(err, "write", options.trace_path);
    }
  }
  step(false);
  thread_ = start_thread("the thread that measures memory", [this] { run(); });
}

Watch::~Watch() {
  try {
    stop();
  } catch (...) {  // a destructor cannot report it
  }
}

double Watch::seconds() const {
  return static_cast<double>(now_ns() - began_ns_) * kNanosecond;
}

double Watch::cost_locked() const {
  return sampling_cpu_s_ + writing_cpu_s_;
}

void Watch::run() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    const std::chrono::duration<double> wait(sampler_.wait_s(seconds()));
    const auto until =
        CondVar::Clock::now() + std::chrono::duration_cast<CondVar::Clock::duration>(wait);
    while (!stopping_ && wake_.wait_until(mutex_, until)) {
    }
    while (!stopping_ && sampler_.ended()) wake_.wait(mutex_);
    if (stopping_) return;
    lock.unlock();
    try {
      step(false);
    } catch (const std::exception&) {  // no memory for this reading, but perhaps for the next
    }
    lock.lock();
  }
}

void Watch::step(bool last) {
  Reading reading = sampler_.take(seconds(), last);
  ended_ = sampler_.ended();
  if (on_reading_ && !reading.processes.empty()) tell(reading);
  const MutexLock lock(mutex_);
  sampling_cpu_s_ = sampler_.cost_cpu_s();
  // A tree that has ended has nothing to report; a reading of 0 would look like shrinking.
  if (!reading.processes.empty() || reading.files) add_locked(std::move(reading));
}

void Watch::tell(const Reading& reading) {
  const Level before = now_.level;
  now_.seconds = reading.seconds;
  now_.processes = reading.processes.size();
  now_.level = level_of(reading);
  if (!now_.level.page_cache) now_.level.page_cache = before.page_cache;
  if (!now_.level.group_usage) now_.level.group_usage = before.group_usage;
  if (const auto cached = group_cache_of(reading)) now_.group_page_cache = cached;
  on_reading_(now_);
}

void Watch::flush_locked() {
  if (const std::optional<Reading> kept = readings_.flush()) {
    if (file_) write_locked(reading_line(*kept));
  }
}

void Watch::add_locked(Reading reading) {
  const std::uint64_t before = thread_cpu_ns();
  // The final reading of watched files, after all processes have ended, is never merged.
  if (reading.processes.empty()) flush_locked();
  if (const std::optional<Reading> kept = readings_.add(std::move(reading))) {
    if (file_) write_locked(reading_line(*kept));
  }
  writing_cpu_s_ += static_cast<double>(thread_cpu_ns() - before) * kNanosecond;
}

void Watch::write_locked(const std::string& line) {
  // After a failed write nothing more is appended, so that everything before it is whole.
  if (!file_ || write_err_ != 0) return;
  write_err_ = file_->append(line);
}

void Watch::mark(const std::string& text) {
  const MutexLock lock(mutex_);
  mark_locked(seconds(), text);
}

void Watch::mark_step(std::uint64_t epoch, std::uint64_t step) {
  const MutexLock lock(mutex_);
  const double now = seconds();
  if (marked_epoch_ != epoch) {
    marked_epoch_ = epoch;
    marked_step_s_ = now;
    mark_locked(now, "epoch " + std::to_string(epoch));
  } else if (now - marked_step_s_ >= std::max(kLeastBetweenSteps, now / kStepsOnAPicture)) {
    marked_step_s_ = now;
    mark_locked(now, "step " + std::to_string(step));
  }
}

void Watch::mark_locked(double now, std::string text) {
  if (stopping_ || is_crowded(trace_.marks, now)) return;
  trace_.marks.push_back({now, std::move(text)});
  if (file_) write_locked(mark_line(trace_.marks.back()));
}

void Watch::stop(std::optional<int> exit_code) {
  {
    const MutexLock lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  step(true);
  const MutexLock lock(mutex_);
  flush_locked();
  trace_.ending = Ending{seconds(), exit_code, cost_locked()};
  if (!file_) return;
  write_locked(ending_line(*trace_.ending));
  const std::string path = file_->path();
  file_.reset();
  if (write_err_ != 0) throw IoError(write_err_, "write", path);
}

Trace Watch::trace() const {
  const MutexLock lock(mutex_);
  Trace trace = trace_;
  trace.readings = readings_.readings();
  return trace;
}

}  // namespace lowtide
