#include "lowtide/jobs.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"

namespace lowtide::python {

using nb::literals::operator""_a;

namespace {

using Shape = std::vector<std::uint64_t>;

JobSource source_of(const std::vector<nb::bytes>& paths, bool tokens,
                    std::optional<std::string> dtype, std::optional<Shape> shape,
                    std::optional<std::uint64_t> offset_bytes, std::optional<bool> fortran_order,
                    bool headerless, std::optional<std::string> format,
                    std::optional<std::uint64_t> eot, const std::vector<nb::bytes>& offsets,
                    std::optional<std::string> key) {
  JobSource source;
  source.paths = from_python(paths);
  source.tokens = tokens;
  source.offsets = from_python(offsets);
  if (tokens) {
    source.token_options.dtype = std::move(dtype);
    source.token_options.format = std::move(format);
    source.token_options.eot = eot;
    source.token_options.key = std::move(key);
  } else {
    source.array = {.dtype = std::move(dtype),
                    .shape = std::move(shape),
                    .offset_bytes = offset_bytes,
                    .fortran_order = fortran_order,
                    .headerless = headerless,
                    .key = std::move(key)};
  }
  return source;
}

Plan shuffle(const JobSource& source, const nb::bytes& destination, const std::string& unit,
             std::uint64_t block_size, std::uint64_t seed, std::uint64_t shards,
             std::uint64_t memory_bytes, bool overwrite) {
  const ShuffleOptions options{.unit = parse_unit(unit),
                               .block_size = block_size,
                               .seed = seed,
                               .shards = shards,
                               .memory_bytes = memory_bytes,
                               .overwrite = overwrite};
  const std::string path = string_of(destination);
  const Unlocked unlocked;
  return plan_shuffle(source, path, options);
}

Plan convert(const JobSource& source, const nb::bytes& destination, const std::string& format,
             std::optional<std::string> dtype, std::uint64_t memory_bytes, bool overwrite) {
  const std::string path = string_of(destination);
  const Unlocked unlocked;
  return plan_convert(source, path,
                      {.format = format,
                       .dtype = std::move(dtype),
                       .memory_bytes = memory_bytes,
                       .overwrite = overwrite});
}

Plan merge(const std::vector<JobSource>& sources, const nb::bytes& destination,
           std::uint64_t memory_bytes, bool overwrite) {
  const std::string path = string_of(destination);
  const Unlocked unlocked;
  return plan_merge(sources, path, {.memory_bytes = memory_bytes, .overwrite = overwrite});
}

// Calls Python from a tick of a running job, on the thread that started it.
template <typename Call>
void with_gil(std::optional<Unlocked>* unlocked, Call call) {
  unlocked->reset();
  if (PyErr_CheckSignals() != 0) throw nb::python_error();  // Ctrl-C
  call();
  unlocked->emplace();
}

void run(const Plan& plan, const nb::object& progress) {
  std::optional<Unlocked> unlocked;
  unlocked.emplace();
  plan.run([&](const JobProgress& now) {
    with_gil(&unlocked, [&] {
      if (progress.is_none()) return;
      progress(now.done_bytes, now.total_bytes, now.stage, now.stages, now.tasks_done, now.tasks);
    });
  });
}

void run_task(const Plan& plan, std::size_t stage, std::size_t task, const nb::object& progress) {
  std::optional<Unlocked> unlocked;
  unlocked.emplace();
  plan.run_task(stage, task, [&](std::uint64_t done_bytes) {
    with_gil(&unlocked, [&] {
      if (!progress.is_none()) progress(done_bytes);
    });
  });
}

std::vector<std::pair<std::string, std::size_t>> stages_of(const Plan& plan) {
  std::vector<std::pair<std::string, std::size_t>> stages;
  for (std::size_t stage = 0; stage < plan.stages(); ++stage)
    stages.emplace_back(plan.stage_name(stage), plan.tasks(stage));
  return stages;
}

}  // namespace

void bind_jobs(nb::module_& module) {
  nb::class_<JobSource>(module, "JobSource")
      .def(
          "__init__",
          [](JobSource* self, const std::vector<nb::bytes>& paths, bool tokens,
             std::optional<std::string> dtype, std::optional<Shape> shape,
             std::optional<std::uint64_t> offset_bytes, std::optional<bool> fortran_order,
             bool headerless, std::optional<std::string> format, std::optional<std::uint64_t> eot,
             const std::vector<nb::bytes>& offsets, std::optional<std::string> key) {
            new (self) JobSource(source_of(paths, tokens, std::move(dtype), std::move(shape),
                                           offset_bytes, fortran_order, headerless,
                                           std::move(format), eot, offsets, std::move(key)));
          },
          "paths"_a, nb::kw_only(), "tokens"_a = false, "dtype"_a = nb::none(),
          "shape"_a = nb::none(), "offset_bytes"_a = nb::none(), "fortran_order"_a = nb::none(),
          "headerless"_a = false, "format"_a = nb::none(), "eot"_a = nb::none(),
          "offsets"_a = std::vector<nb::bytes>{}, "key"_a = nb::none());
  nb::class_<Plan>(module, "Plan")
      .def_prop_ro("verb", [](const Plan& plan) { return std::string(plan.verb()); })
      .def_prop_ro("destination", [](const Plan& plan) { return bytes_of(plan.destination()); })
      .def_prop_ro("memory_bytes", &Plan::memory_bytes)
      .def_prop_ro("stages", &stages_of)
      .def(
          "inputs",
          [](const Plan& plan, std::size_t stage, std::size_t task) {
            return to_python(plan.inputs(stage, task));
          },
          "stage"_a, "task"_a)
      .def(
          "outputs",
          [](const Plan& plan, std::size_t stage, std::size_t task) {
            return to_python(plan.outputs(stage, task));
          },
          "stage"_a, "task"_a)
      .def("task_bytes", &Plan::task_bytes, "stage"_a, "task"_a)
      .def("done", &Plan::done, "stage"_a, "task"_a, nb::call_guard<Unlocked>())
      .def("ready", &Plan::ready, "stage"_a, nb::call_guard<Unlocked>())
      .def("run_task", &run_task, "stage"_a, "task"_a, "progress"_a = nb::none(),
           nb::sig("def run_task(self, stage: int, task: int, progress: "
                   "collections.abc.Callable[[int], object] | None = None) -> None"))
      .def("run", &run, "progress"_a = nb::none(),
           nb::sig("def run(self, progress: collections.abc.Callable[[int, int, int, int, int, "
                   "int], object] | None = None) -> None"))
      .def("clean", &Plan::clean, nb::call_guard<Unlocked>())
      .def("text", [](const Plan& plan) { return bytes_of(plan.text()); })
      .def_static(
          "from_text", [](const nb::bytes& text) { return Plan::from_text(string_of(text)); },
          "text"_a);
  module.def("plan_shuffle", &shuffle, "source"_a, "destination"_a, nb::kw_only(), "unit"_a = "row",
             "block_size"_a = 0, "seed"_a = 0, "shards"_a = 1, "memory_bytes"_a = 0,
             "overwrite"_a = false);
  module.def("plan_convert", &convert, "source"_a, "destination"_a, "format"_a, nb::kw_only(),
             "dtype"_a = nb::none(), "memory_bytes"_a = 0, "overwrite"_a = false);
  module.def("plan_merge", &merge, "sources"_a, "destination"_a, nb::kw_only(),
             "memory_bytes"_a = 0, "overwrite"_a = false);
  module.def(
      "plan_check",
      [](const JobSource& source, std::uint64_t memory_bytes) {
        const Unlocked unlocked;
        return plan_check(source, memory_bytes);
      },
      "source"_a, nb::kw_only(), "memory_bytes"_a = 0);
}

}  // namespace lowtide::python
