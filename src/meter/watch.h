// watch.h - a thread that takes readings until it is stopped, and the trace that they form.
//
// The first reading is taken before the constructor returns. With a path, every record is also
// appended to that file as it is made. Any thread of the process that made it may call.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/mutex.h"
#include "lowtide/profile.h"
#include "meter/sampler.h"
#include "meter/thinned.h"
#include "meter/trace.h"
#include "os/output_file.h"

namespace lowtide {

class Watch {
 public:
  struct Options {
    SamplerOptions sampler;
    std::vector<std::string> command;
    std::string trace_path;                             // empty: in memory only
    std::function<void(const Moment& now)> on_reading;  // called without the lock
  };

  // Throws IoError: no such process, or the trace cannot be written.
  explicit Watch(Options options);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // After the first 256 marks, a mark closer to the last one than a 2000th of the run is dropped.
  void mark(const std::string& text);
  // Marks epochs as they begin, and a step if the last step's mark is long ago.
  void mark_step(std::uint64_t epoch, std::uint64_t step);
  // Takes a last reading, if there is still something to see, and writes the ending. Only the first
  // call has an effect. Throws IoError if the trace could not be written to its end; the trace in
  // memory is complete even then.
  void stop(std::optional<int> exit_code = std::nullopt);
  [[nodiscard]] Trace trace() const;

  [[nodiscard]] int root_pid() const { return root_pid_; }
  [[nodiscard]] bool ended() const { return ended_; }  // no process is left

 private:
  void run();
  void step(bool last);
  void tell(const Reading& reading);
  void add_locked(Reading reading) LOWTIDE_REQUIRES(mutex_);
  void flush_locked() LOWTIDE_REQUIRES(mutex_);
  void write_locked(const std::string& line) LOWTIDE_REQUIRES(mutex_);
  void mark_locked(double now, std::string text) LOWTIDE_REQUIRES(mutex_);
  [[nodiscard]] double seconds() const;
  [[nodiscard]] double cost_locked() const LOWTIDE_REQUIRES(mutex_);

  const std::uint64_t began_ns_;
  Sampler sampler_;  // used by the thread, and before and after it by the constructor and stop()
  int root_pid_;
  const std::function<void(const Moment& now)> on_reading_;
  Moment now_;  // used by the same thread as the sampler
  std::atomic<bool> ended_ = false;

  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ LOWTIDE_GUARDED_BY(mutex_) = false;
  Trace trace_ LOWTIDE_GUARDED_BY(mutex_);  // its readings are kept in readings_
  Thinned readings_ LOWTIDE_GUARDED_BY(mutex_);
  std::unique_ptr<AppendFile> file_ LOWTIDE_GUARDED_BY(mutex_);
  int write_err_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  double writing_cpu_s_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  double sampling_cpu_s_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::optional<std::uint64_t> marked_epoch_ LOWTIDE_GUARDED_BY(mutex_);
  double marked_step_s_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace lowtide
