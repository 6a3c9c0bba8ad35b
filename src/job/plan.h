// plan.h - behind Plan: what every verb says about its tasks, and how tasks are run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "job/facts.h"
#include "job/folder.h"
#include "job/watch.h"
#include "lowtide/jobs.h"

namespace lowtide {

// Immutable. Any thread.
class Plan::Impl {
 public:
  struct Stage {
    std::string name;
    std::size_t tasks = 0;
  };
  virtual ~Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::string verb;
  Facts facts;  // all of the plan
  JobFolder folder;
  std::uint64_t memory_bytes = 0;
  std::vector<Stage> stages;

  [[nodiscard]] virtual std::vector<std::string> inputs(std::size_t stage,
                                                        std::size_t task) const = 0;
  [[nodiscard]] virtual std::vector<std::string> outputs(std::size_t stage,
                                                         std::size_t task) const = 0;
  [[nodiscard]] virtual std::uint64_t task_bytes(std::size_t stage, std::size_t task) const = 0;
  // How many tasks of a stage run at once here; each gets its part of the memory.
  [[nodiscard]] virtual std::size_t width(std::size_t /*stage*/) const { return 1; }
  // Runs a task, whether it is done or not.
  virtual void run(std::size_t stage, std::size_t task, std::uint64_t memory_bytes,
                   JobWatch& watch) const = 0;

  // Whether this plan made what is at the destination, as its signature says.
  [[nodiscard]] bool made() const;
  // Throws IoError(EEXIST) unless the destination is free, may be overwritten, or has the result.
  void require_free() const;
  // Whether the destination has the result.
  [[nodiscard]] virtual bool published() const;
  [[nodiscard]] virtual bool done(std::size_t stage, std::size_t task) const;
  // Publishes the result if nothing else is left to do, and then removes the job folder.
  void finish() const;

 protected:
  Impl() = default;
  // Takes over the facts, whose hash gives the job folder its name, and what stood at the
  // destination.
  void settle(Facts identity, const Destination& destination);
  void settle(Facts all);
};

// Runs these tasks of a stage on `threads` threads. `tick` is called on this thread, with the bytes
// and the tasks done so far, at least ten times per second; it may end the run by throwing.
void run_tasks(const Plan::Impl& plan, std::size_t stage, const std::vector<std::size_t>& tasks,
               std::size_t threads, std::uint64_t memory_bytes,
               const std::function<void(std::uint64_t bytes, std::size_t tasks)>& tick);

// The plan of a verb, from its facts. Throws std::invalid_argument if they are incomplete.
[[nodiscard]] std::shared_ptr<const Plan::Impl> shuffle_of(Facts facts);
[[nodiscard]] std::shared_ptr<const Plan::Impl> copy_of(Facts facts);  // convert, merge
[[nodiscard]] std::shared_ptr<const Plan::Impl> check_of(Facts facts);

// memory_bytes as the user gave it, or the default.
[[nodiscard]] std::uint64_t job_memory(std::uint64_t memory_bytes);

}  // namespace lowtide
