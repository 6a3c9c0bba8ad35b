#include "job/plan.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "core/quote.h"
#include "os/paths.h"
#include "writer/published_file.h"

namespace lowtide {
namespace {

constexpr auto kPublishWait = std::chrono::seconds(10);

template <typename Number>
void check_index(std::string_view what, Number index, Number count) {
  if (index < count) return;
  throw std::out_of_range(std::string(what) + " " + std::to_string(index) +
                          " does not exist; there " +
                          (count == 1 ? "is 1" : "are " + std::to_string(count)));
}

}  // namespace

std::uint64_t job_memory(std::uint64_t memory_bytes) {
  return memory_bytes != 0 ? memory_bytes : default_memory_bytes();
}

void Plan::Impl::settle(Facts identity, const Destination& destination) {
  folder = JobFolder(destination, identity.hash());
  identity.add("hash", folder.hash());
  destination.add_before_to(&identity);
  settle(std::move(identity));
}

void Plan::Impl::settle(Facts all) {
  facts = std::move(all);
  verb = facts.at("verb");
  memory_bytes = facts.number("memory");
  if (facts.find("destination") != nullptr)
    folder = JobFolder(Destination::of(facts), facts.number("hash"));
}

bool Plan::Impl::made() const {
  if (folder.destination().path.empty()) return false;
  const std::size_t last = stages.size() - 1;
  for (std::size_t task = 0; task < stages[last].tasks; ++task) {
    for (const std::string& output : outputs(last, task)) {
      if (!PublishedFile::is_signed(output, folder.hash())) return false;
    }
  }
  return true;
}

void Plan::Impl::require_free() const {
  const Destination& destination = folder.destination();
  if (destination.overwrite || made()) return;
  if (path_exists(destination.path)) refuse_existing(destination.path);
  const std::size_t last = stages.size() - 1;
  for (std::size_t task = 0; task < stages[last].tasks; ++task) {
    for (const std::string& output : outputs(last, task)) {
      if (path_exists(output)) refuse_existing(output);  // an index without its data
    }
  }
}

bool Plan::Impl::published() const {
  const Destination& destination = folder.destination();
  if (destination.path.empty() || !destination.changed()) return false;
  const std::optional<PathStamp> there = stamp_of(destination.path);
  if (!there || there->folder != destination.folder) return false;
  if (!destination.folder && there->size_bytes != facts.number("result.bytes")) return false;
  // The outputs of the last stage are the result, or inside it.
  const std::size_t last = stages.size() - 1;
  for (std::size_t task = 0; task < stages[last].tasks; ++task) {
    for (const std::string& output : outputs(last, task)) {
      if (!stamp_of(output)) return false;
    }
  }
  return true;
}

bool Plan::Impl::done(std::size_t stage, std::size_t task) const {
  if (published()) return true;
  const Destination& destination = folder.destination();
  const bool last = stage + 1 == stages.size();
  if (destination.path.empty() || (last && !destination.folder)) return false;
  for (std::string output : outputs(stage, task)) {
    // Until the whole folder has its name, its parts are in the job folder.
    if (last) output = folder.result() + output.substr(destination.path.size());
    if (!stamp_of(output)) return false;
  }
  return true;
}

void Plan::Impl::finish() const {
  const Destination& destination = folder.destination();
  if (destination.path.empty()) return;
  const std::size_t last = stages.size() - 1;
  if (destination.folder && !published()) {
    for (std::size_t task = 0; task < stages[last].tasks; ++task) {
      if (!done(last, task)) return;
    }
    try {
      folder.publish();
    } catch (const IoError& error) {
      // Another task has the result in its hands, or has published it since published() was asked.
      if (error.err != ENOENT && !(error.err == EEXIST && published())) throw;
      const auto deadline = std::chrono::steady_clock::now() + kPublishWait;
      while (!published()) {
        if (std::chrono::steady_clock::now() > deadline) throw;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  }
  if (published()) folder.remove();
}

Plan::Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

std::string_view Plan::verb() const {
  return impl_->verb;
}
const std::string& Plan::destination() const {
  return impl_->folder.destination().path;
}
std::uint64_t Plan::memory_bytes() const {
  return impl_->memory_bytes;
}
std::size_t Plan::stages() const {
  return impl_->stages.size();
}
std::size_t Plan::tasks(std::size_t stage) const {
  check_index("stage", stage, stages());
  return impl_->stages[stage].tasks;
}
std::string_view Plan::stage_name(std::size_t stage) const {
  check_index("stage", stage, stages());
  return impl_->stages[stage].name;
}
std::vector<std::string> Plan::inputs(std::size_t stage, std::size_t task) const {
  check_index("task", task, tasks(stage));
  return impl_->inputs(stage, task);
}
std::vector<std::string> Plan::outputs(std::size_t stage, std::size_t task) const {
  check_index("task", task, tasks(stage));
  return impl_->outputs(stage, task);
}
std::uint64_t Plan::task_bytes(std::size_t stage, std::size_t task) const {
  check_index("task", task, tasks(stage));
  return impl_->task_bytes(stage, task);
}
bool Plan::done(std::size_t stage, std::size_t task) const {
  check_index("task", task, tasks(stage));
  return impl_->done(stage, task);
}

bool Plan::made() const {
  return impl_->made();
}

bool Plan::ready(std::size_t stage) const {
  check_index("stage", stage, stages());
  for (std::size_t before = 0; before < stage; ++before) {
    for (std::size_t task = 0; task < tasks(before); ++task) {
      if (!impl_->done(before, task)) return false;
    }
  }
  return true;
}

void Plan::run_task(std::size_t stage, std::size_t task,
                    const std::function<void(std::uint64_t)>& progress) const {
  check_index("task", task, tasks(stage));
  run_tasks(*impl_, stage, {task}, 1, memory_bytes(),
            [&](std::uint64_t bytes, std::size_t /*tasks*/) {
              if (progress) progress(std::min(bytes, impl_->task_bytes(stage, task)));
            });
}

void Plan::run(const std::function<void(const JobProgress&)>& progress) const {
  const auto run_all = [&] {
    JobProgress now{.stages = stages()};
    for (std::size_t stage = 0; stage < stages(); ++stage) {
      for (std::size_t task = 0; task < tasks(stage); ++task)
        now.total_bytes += task_bytes(stage, task);
    }
    std::uint64_t before_bytes = 0;
    for (now.stage = 0; now.stage < stages(); ++now.stage) {
      std::vector<std::size_t> left;
      now.tasks = tasks(now.stage);
      for (std::size_t task = 0; task < now.tasks; ++task) {
        if (impl_->done(now.stage, task)) {
          before_bytes += task_bytes(now.stage, task);
        } else {
          left.push_back(task);
        }
      }
      std::uint64_t stage_bytes = 0;
      for (const std::size_t task : left) stage_bytes += task_bytes(now.stage, task);
      const std::size_t threads =
          std::max<std::size_t>(1, std::min(left.size(), impl_->width(now.stage)));
      const auto tick = [&](std::uint64_t bytes, std::size_t done) {
        now.done_bytes = before_bytes + std::min(bytes, stage_bytes);
        now.tasks_done = now.tasks - left.size() + done;
        if (progress) progress(now);
      };
      run_tasks(*impl_, now.stage, left, threads, memory_bytes() / threads, tick);
      before_bytes += stage_bytes;
      tick(0, left.size());
    }
  };
  try {
    run_all();
  } catch (...) {
    try {
      clean();
    } catch (const IoError&) {  // the error that came first says more
    }
    throw;
  }
  clean();
}

void Plan::clean() const {
  if (!destination().empty()) impl_->folder.remove();
}

std::string Plan::text() const {
  return impl_->facts.text();
}

Plan Plan::from_text(std::string_view text) {
  Facts facts = Facts::parse(text);
  const std::string verb = facts.at("verb");
  if (verb == "shuffle") return Plan(shuffle_of(std::move(facts)));
  if (verb == "convert" || verb == "merge") return Plan(copy_of(std::move(facts)));
  if (verb == "check") return Plan(check_of(std::move(facts)));
  throw std::invalid_argument("this plan has an unknown verb: " + excerpt(verb));
}

}  // namespace lowtide
