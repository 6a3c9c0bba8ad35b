#include "lowtide/profile.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <vector>

#include "bindings.h"
#include "gil.h"

namespace lowtide::python {

using nb::literals::operator""_a;

namespace {

Profile start(int pid, double interval_s, bool children, const nb::bytes& trace_path,
              const std::vector<std::string>& command, const std::vector<nb::bytes>& watch_files) {
  const ProfileOptions options{.pid = pid,
                               .interval_s = interval_s,
                               .children = children,
                               .trace_path = string_of(trace_path),
                               .command = command,
                               .watch_files = from_python(watch_files)};
  const Unlocked unlocked;
  return Profile(options);
}

// The kinds of memory that a Level and a Growth both have.
template <class Figures>
nb::dict kinds_dict(const Figures& figures) {
  nb::dict out;
  out["rss"] = figures.rss;
  out["anon"] = figures.anon;
  out["file"] = figures.file;
  out["shmem"] = figures.shmem;
  out["page_tables"] = figures.page_tables;
  out["page_cache"] = figures.page_cache;
  return out;
}

nb::dict level_dict(const Level& level) {
  nb::dict out = kinds_dict(level);
  out["group_usage"] = level.group_usage;
  return out;
}

nb::dict start_level(const Recording& recording) {
  return level_dict(recording.start());
}

nb::dict peak(const Recording& recording) {
  return level_dict(recording.peak());
}

nb::dict end_level(const Recording& recording) {
  return level_dict(recording.end());
}

nb::dict growth(const Recording& recording) {
  return kinds_dict(recording.growth());
}

nb::tuple verdict(const Recording& recording) {
  const Verdict verdict = recording.verdict();
  return nb::make_tuple(verdict_word(verdict.kind), verdict.headline, verdict.evidence,
                        verdict.unknown, verdict.advice);
}

}  // namespace

void bind_profile(nb::module_& module) {
  nb::class_<Recording>(module, "Recording")
      .def_static(
          "load",
          [](const nb::bytes& path) {
            const std::string name = string_of(path);
            const Unlocked unlocked;
            return Recording::load(name);
          },
          "path"_a)
      .def("start", &start_level, nb::sig("def start(self) -> dict[str, int | None]"))
      .def("peak", &peak, nb::sig("def peak(self) -> dict[str, int | None]"))
      .def("end", &end_level, nb::sig("def end(self) -> dict[str, int | None]"))
      .def("growth", &growth, nb::sig("def growth(self) -> dict[str, int | None]"))
      .def("verdict", &verdict,
           nb::sig("def verdict(self) -> tuple[str, str, list[str], list[str], list[str]]"))
      .def_prop_ro("seconds", &Recording::seconds)
      .def_prop_ro("readings", &Recording::readings)
      .def_prop_ro("cost", &Recording::cost)
      .def_prop_ro("cut", &Recording::cut)
      .def("html", &Recording::html)
      .def(
          "svg",
          [](const Recording& recording, std::uint64_t memory_bytes, double seconds, bool small) {
            return recording.svg({memory_bytes, seconds, small});
          },
          "memory_bytes"_a = 0, "seconds"_a = 0.0, "small"_a = false)
      .def("json", &Recording::json)
      .def(
          "save",
          [](const Recording& recording, const nb::bytes& path, std::uint64_t memory_bytes,
             double seconds, bool small) {
            const std::string name = string_of(path);
            const Unlocked unlocked;
            recording.save(name, {memory_bytes, seconds, small});
          },
          "path"_a, "memory_bytes"_a = 0, "seconds"_a = 0.0, "small"_a = false);
  nb::class_<Profile>(module, "Profile")
      .def_static("start", &start, "pid"_a, "interval_s"_a, "children"_a, "trace_path"_a,
                  "command"_a, "watch_files"_a)
      .def("mark", &Profile::mark, "text"_a, nb::call_guard<Unlocked>())
      .def(
          "stop", [](Profile& profile) { profile.stop(); }, nb::call_guard<Unlocked>())
      .def("recording", &Profile::recording, nb::call_guard<Unlocked>());
}

}  // namespace lowtide::python
