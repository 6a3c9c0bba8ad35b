// watch.h - a thread that takes readings until it is stopped, and the trace that they form.
//
// The first reading is taken before the constructor returns. With a path, every record is also
// appended to that file as it is made. Any thread of the process that made it may call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

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
  void add_locked(Reading reading);
  void flush_locked();
  void write_locked(const std::string& line);
  void mark_locked(double now, std::string text);
  [[nodiscard]] double seconds() const;
  [[nodiscard]] double cost_locked() const;

  const std::uint64_t began_ns_;
  Sampler sampler_;  // used by the thread, and before and after it by the constructor and stop()
  int root_pid_;
  const std::function<void(const Moment& now)> on_reading_;
  Moment now_;  // used by the same thread as the sampler
  std::atomic<bool> ended_ = false;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  Trace trace_;  // its readings are kept in readings_
  Thinned readings_;
  std::unique_ptr<AppendFile> file_;
  int write_err_ = 0;
  double writing_cpu_s_ = 0, sampling_cpu_s_ = 0;
  std::optional<std::uint64_t> marked_epoch_;
  double marked_step_s_ = 0;
  std::thread thread_;
};

}  // namespace lowtide
