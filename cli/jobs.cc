#include "jobs.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <stdexcept>

#include "failure.h"
#include "lowtide/bytes.h"
#include "lowtide/command/json.h"
#include "lowtide/command/terminal.h"
#include "lowtide/error.h"
#include "stop.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string verb_of(const Plan& plan) {
  return std::string(plan.verb());
}

// The data that goes through one stage.
std::uint64_t stage_bytes(const Plan& plan, std::size_t stage) {
  std::uint64_t bytes = 0;
  for (std::size_t task = 0; task < plan.tasks(stage); ++task) {
    bytes += plan.task_bytes(stage, task);
  }
  return bytes;
}

std::size_t tasks_done(const Plan& plan, std::size_t stage) {
  std::size_t done = 0;
  for (std::size_t task = 0; task < plan.tasks(stage); ++task) done += plan.done(stage, task);
  return done;
}

std::string tasks_text(std::size_t tasks) {
  return grouped(tasks) + (tasks == 1 ? " task" : " tasks");
}

std::string stages_text(const Plan& plan) {
  std::string text;
  for (std::size_t stage = 0; stage < plan.stages(); ++stage) {
    text += (stage == 0 ? "" : ", ") + std::string(plan.stage_name(stage)) + " " +
            grouped(plan.tasks(stage));
  }
  return text;
}

void begin_json(JsonWriter* json, const Plan& plan) {
  json->begin_object()
      .field("verb", plan.verb())
      .field("destination", plan.destination())
      .field("memory", plan.memory_bytes());
}

std::string speed_text(std::uint64_t bytes, double seconds) {
  return " in " + format_fixed(seconds, 2) + " s (" + rate_text(bytes, seconds) + ")";
}

// One stage after the other. What a plan still has to do is found out by looking at the disk.
int show_plan(const Plan& plan, bool as_json) {
  JsonWriter json;
  begin_json(&json, plan);
  json.field("bytes", stage_bytes(plan, plan.stages() - 1)).key("stages").begin_array();
  Fields fields;
  fields.add("data", format_bytes(stage_bytes(plan, plan.stages() - 1)));
  fields.add("memory", format_bytes(plan.memory_bytes()));
  for (std::size_t stage = 0; stage < plan.stages(); ++stage) {
    const std::size_t tasks = plan.tasks(stage), done = tasks_done(plan, stage);
    const std::string name(plan.stage_name(stage));
    fields.add("stage " + std::to_string(stage),
               name + ", tasks: " + grouped(tasks) + ", done: " + grouped(done));
    json.begin_object().field("name", name).field("tasks", tasks).field("done", done);
    json.field("ready", plan.ready(stage)).end_object();
  }
  json.end_array().end_object();
  print(as_json ? json.text() + "\n"
                : paint(shown(plan.destination()), Tone::bold) + "\n" + fields.text());
  return kDone;
}

// The bar on a terminal; elsewhere one line per task. Ends the job by an exception when a signal
// came.
class Watch {
 public:
  Watch(const Plan& plan, const StopSignals& stop)
      : plan_(plan), stop_(stop), bar_(verb_of(plan)), start_(Clock::now()) {}

  void show(const JobProgress& at) {
    bar_.show(at.done_bytes, at.total_bytes);
    if (!error_output().progress) tell_tasks(at);
    if (stop_.came()) throw Stopped{at.done_bytes, at.total_bytes};
  }

 private:
  void tell_tasks(const JobProgress& at) {
    if (at.stage != stage_) told_ = 0;
    stage_ = at.stage;
    for (; told_ < at.tasks_done; ++told_) {
      print_error("lowtide " + verb_of(plan_) + ": " + std::string(plan_.stage_name(at.stage)) +
                  ": " + grouped(told_ + 1) + " of " + tasks_text(at.tasks) + " done, " +
                  format_bytes(at.done_bytes) + " of " + format_bytes(at.total_bytes) + ", " +
                  rate_text(at.done_bytes, seconds_since(start_)) + "\n");
    }
  }

  const Plan& plan_;
  const StopSignals& stop_;
  Progress bar_;
  Clock::time_point start_;
  std::size_t stage_ = 0, told_ = 0;
};

// What vanished while a job ran is a failure, not a wrong word.
template <typename Work>
void run_or_fail(const Work& work) {
  try {
    work();
  } catch (const IoError& error) {
    throw std::runtime_error(error.what());
  }
}

int run_all(const Plan& plan, const JobWords& words) {
  const bool was_done = !words.overwrite && plan.made();
  const StopSignals stop;
  const Clock::time_point start = Clock::now();
  try {
    Watch watch(plan, stop);
    run_or_fail([&] { plan.run([&](const JobProgress& at) { watch.show(at); }); });
  } catch (const Stopped& at) {
    tell(verb_of(plan), "stopped after " + format_bytes(at.done_bytes) + " of " +
                            format_bytes(at.all_bytes) + ": nothing was written");
    return stop.exit_code();
  }
  const double seconds = seconds_since(start);
  const std::uint64_t bytes = stage_bytes(plan, plan.stages() - 1);
  if (words.source.json) {
    JsonWriter json;
    begin_json(&json, plan);
    json.field("was_done", was_done).field("bytes", bytes).field("seconds", seconds).end_object();
    print(json.text() + "\n");
    return kDone;
  }
  Fields fields;
  fields.add("data", format_bytes(bytes) + (was_done ? ", already done: this job wrote it before"
                                                     : speed_text(bytes, seconds)));
  fields.add("memory", format_bytes(plan.memory_bytes()));
  fields.add("tasks", stages_text(plan));
  print(paint(shown(plan.destination()), Tone::bold) + "\n" + fields.text());
  return kDone;
}

// By name or by number. May be left out if there is only one.
std::size_t stage_of(const Plan& plan, const std::string& word) {
  if (word.empty() && plan.stages() == 1) return 0;
  for (std::size_t stage = 0; stage < plan.stages(); ++stage) {
    if (word == plan.stage_name(stage) || word == std::to_string(stage)) return stage;
  }
  const std::string problem =
      word.empty() ? "--stage is missing" : "--stage: there is no stage \"" + word + "\"";
  throw std::invalid_argument(problem + "; stages and their tasks: " + stages_text(plan));
}

std::size_t task_of(const Plan& plan, std::size_t stage, const std::string& word) {
  const std::size_t slash = word.find('/');
  if (slash == std::string::npos) {
    throw std::invalid_argument("--task: expected K/N, such as 0/64, found \"" + word + "\"");
  }
  const std::uint64_t task = parse_count(word.substr(0, slash), "--task");
  const std::uint64_t tasks = parse_count(word.substr(slash + 1), "--task");
  if (tasks != plan.tasks(stage)) {
    throw std::invalid_argument("--task " + word + ": N must be the number of tasks of the stage " +
                                std::string(plan.stage_name(stage)) + ", which is " +
                                grouped(plan.tasks(stage)) +
                                ". Give every task the same options, including --memory");
  }
  if (task < tasks) return task;
  throw std::invalid_argument("--task " + word + ": K counts from 0, so the last one is " +
                              std::to_string(tasks - 1) + "/" + std::to_string(tasks));
}

void require_ready(const Plan& plan, std::size_t stage) {
  if (plan.ready(stage)) return;
  for (std::size_t before = 0; before < stage; ++before) {
    const std::size_t done = tasks_done(plan, before), tasks = plan.tasks(before);
    if (done == tasks) continue;
    throw std::runtime_error("stage " + std::string(plan.stage_name(stage)) +
                             " is not ready: " + grouped(tasks - done) + " of " +
                             tasks_text(tasks) + " of " + std::string(plan.stage_name(before)) +
                             (tasks - done == 1 ? " is not done" : " are not done"));
  }
}

int run_one(const Plan& plan, const JobWords& words) {
  const std::size_t stage = stage_of(plan, words.stage);
  const std::size_t task = task_of(plan, stage, words.task);
  const std::uint64_t bytes = plan.task_bytes(stage, task);
  // Once the result has its name, a task that is started again has nothing to do, even if it may
  // overwrite: it would only begin the job anew.
  const bool made = plan.made();
  const bool was_done = made || plan.done(stage, task);
  if (!was_done) require_ready(plan, stage);
  const StopSignals stop;
  const Clock::time_point start = Clock::now();
  try {
    Progress bar(verb_of(plan));
    if (!made)
      run_or_fail([&] {
        plan.run_task(stage, task, [&](std::uint64_t done_bytes) {
          bar.show(done_bytes, bytes);
          if (stop.came()) throw Stopped{done_bytes, bytes};
        });
      });
  } catch (const Stopped& at) {
    tell(verb_of(plan), "stopped after " + format_bytes(at.done_bytes) + " of " +
                            format_bytes(at.all_bytes) + " of this task: it left nothing behind");
    return stop.exit_code();
  }
  const double seconds = seconds_since(start);
  const std::string name(plan.stage_name(stage));
  if (words.source.json) {
    JsonWriter json;
    begin_json(&json, plan);
    json.field("stage", stage).field("name", name).field("task", task);
    json.field("tasks", plan.tasks(stage)).field("was_done", was_done);
    json.field("bytes", bytes).field("seconds", seconds).end_object();
    print(json.text() + "\n");
    return kDone;
  }
  const std::string about = made       ? "already done: the result is " + shown(plan.destination())
                            : was_done ? "already done"
                                       : format_bytes(bytes) + speed_text(bytes, seconds);
  print(name + " " + std::to_string(task) + "/" + std::to_string(plan.tasks(stage)) + "  " + about +
        "\n");
  return kDone;
}

// If the folder of OUT is missing, the message of the error names the remedy; "no such file" would
// not.
Plan planned(const JobWords& words, const std::function<Plan()>& make_plan) {
  try {
    return make_plan();
  } catch (const IoError& error) {
    const bool of_output = error.path.ends_with(words.output);
    if (of_output && error.err == ENOENT) throw std::invalid_argument(error.what());
    if (error.err == EEXIST && !words.task.empty()) {
      throw std::runtime_error(
          std::string(error.what()) +
          "; if another task of this job wrote it, there is nothing left to do");
    }
    throw;
  }
}

}  // namespace

int run_job(const JobWords& words, const std::function<Plan()>& make_plan) {
  const Plan plan = planned(words, make_plan);
  if (words.plan) return show_plan(plan, words.source.json);
  if (!words.task.empty()) return run_one(plan, words);
  if (!words.stage.empty()) throw std::invalid_argument("--stage needs --task K/N");
  return run_all(plan, words);
}

}  // namespace lowtide::cli
