#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "gil.h"
#include "lowtide/command/build.h"
#include "lowtide/command/doctor.h"
#include "lowtide/info.h"

namespace lowtide::python {

using nb::literals::operator""_a;

namespace {

using FactDict = nb::typed<nb::dict, nb::str, nb::any>;

nb::bytes to_bytes(const std::string& path) {
  return nb::bytes(path.data(), path.size());
}

// With bytes that are no UTF-8 as os.fsdecode has them: paths are part of these texts.
nb::str text_of(const std::string& text) {
  return nb::steal<nb::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

InfoOptions options_of(std::optional<bool> tokens, std::optional<std::string> dtype,
                       std::optional<std::vector<std::uint64_t>> shape,
                       std::optional<std::uint64_t> offset_bytes, std::optional<bool> fortran_order,
                       std::optional<std::string> format) {
  InfoOptions options;
  if (tokens) options.kind = *tokens ? FileKind::tokens : FileKind::array;
  options.dtype = std::move(dtype);
  options.shape = std::move(shape);
  options.offset_bytes = offset_bytes;
  options.fortran_order = fortran_order;
  options.format = std::move(format);
  return options;
}

nb::list array_dicts(const std::vector<ArrayInfo>& arrays) {
  nb::list all;
  for (const ArrayInfo& one : arrays) {
    nb::dict facts;
    facts["key"] = text_of(one.key);
    if (one.fault.empty()) {
      facts["dtype"] = one.dtype;
      facts["shape"] = nb::tuple(nb::cast(one.shape));
      facts["order"] = one.fortran_order ? "F" : "C";
      facts["bytes"] = one.bytes;
    } else {
      facts["error"] = text_of(one.fault);
    }
    all.append(facts);
  }
  return all;
}

FactDict info_dict(const Info& found) {
  FactDict out;
  out["path"] = to_bytes(found.path);
  out["kind"] = file_kind_word(found.kind);
  out["format"] = found.format;
  if (found.kind == FileKind::tokens) {
    out["dtype"] = found.dtype;
    out["tokens"] = found.shape.at(0);
    out["documents"] = found.documents;
  } else if (found.kind == FileKind::sparse) {
    out["dtype"] = found.dtype;
    out["rows"] = found.shape.at(0);
    out["nnz"] = found.values;
  } else if (has_several_arrays(found)) {
    for (const char* const none : {"dtype", "shape", "order"}) out[none] = nb::none();
  } else {
    out["dtype"] = found.dtype;
    out["shape"] = nb::tuple(nb::cast(found.shape));
    out["order"] = found.fortran_order ? "F" : "C";
  }
  if (!found.arrays.empty()) out["arrays"] = array_dicts(found.arrays);
  out["bytes"] = found.bytes;
  out["shards"] = found.shards;
  out["cached"] = found.cached_bytes;
  nb::list files;
  for (const FileInfo& file : found.files) {
    nb::dict one;
    one["path"] = to_bytes(file.path);
    one["bytes"] = file.bytes;
    one["cached"] = file.cached_bytes;
    files.append(one);
  }
  out["files"] = files;
  return out;
}

FactDict info_of(const std::vector<nb::bytes>& paths, bool expand, std::optional<bool> tokens,
                 std::optional<std::string> dtype, std::optional<std::vector<std::uint64_t>> shape,
                 std::optional<std::uint64_t> offset_bytes, std::optional<bool> fortran_order,
                 std::optional<std::string> format) {
  const std::vector<std::string> names = from_python(paths);
  const InfoOptions options = options_of(tokens, std::move(dtype), std::move(shape), offset_bytes,
                                         fortran_order, std::move(format));
  Info found;
  {
    const Unlocked unlocked;
    found = expand ? info(names.at(0), options) : info(names, options);
  }
  return info_dict(found);
}

FactDict check_of(const std::vector<nb::bytes>& paths, bool expand, std::optional<bool> tokens,
                  std::optional<std::string> dtype, std::optional<std::vector<std::uint64_t>> shape,
                  std::optional<std::uint64_t> offset_bytes, std::optional<bool> fortran_order,
                  std::optional<std::string> format, std::optional<std::uint64_t> vocab,
                  std::optional<std::uint64_t> eot, bool nan, std::uint64_t memory_bytes) {
  const std::vector<std::string> names = from_python(paths);
  CheckOptions options;
  options.file = options_of(tokens, std::move(dtype), std::move(shape), offset_bytes, fortran_order,
                            std::move(format));
  options.vocab = vocab;
  options.eot = eot;
  options.count_nan = nan;
  options.memory_bytes = memory_bytes;
  std::optional<Unlocked> unlocked;
  options.progress = [&](std::uint64_t, std::uint64_t) {
    unlocked.reset();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();  // Ctrl-C
    unlocked.emplace();
  };
  unlocked.emplace();
  const CheckResult result = expand ? check(names.at(0), options) : check(names, options);
  unlocked.reset();
  FactDict out = info_dict(result.info);
  if (result.info.kind == FileKind::tokens) out["highest_token"] = result.highest_token;
  if (result.nan) out["nan"] = *result.nan;
  if (result.infinite) out["infinite"] = *result.infinite;
  out["notes"] = result.notes;
  return out;
}

FactDict build_dict(const std::string& folder) {
  const Build found = build(folder);
  FactDict out;
  out["version"] = found.version;
  out["compiler"] = found.compiler;
  out["target"] = found.target;
  out["io_uring"] = found.io_uring;
  out["http"] = found.http;
  out["why_no_http"] = found.why_no_http;
  out["vector_paths"] = found.vector_paths;
  out["vector_used"] = found.vector_used;
  out["command"] = found.command ? nb::object(to_bytes(*found.command)) : nb::none();
  out["guard"] = found.guard ? nb::object(to_bytes(*found.guard)) : nb::none();
  return out;
}

FactDict doctor_of(const std::optional<nb::bytes>& path, std::uint64_t memory_bytes,
                   const nb::bytes& folder) {
  DoctorOptions options;
  if (path) options.path = string_of(*path);
  options.memory_bytes = memory_bytes;
  options.folder = string_of(folder);
  std::vector<Fact> found;
  {
    const Unlocked unlocked;
    found = examine(options);
  }
  FactDict out;
  out["conclusion"] = text_of(conclusion_of(found));
  out["build"] = build_dict(*options.folder);
  nb::list facts;
  for (const Fact& fact : found) {
    nb::dict one;
    one["name"] = fact.name;
    one["state"] = fact_state_word(fact.state);
    one["value"] = text_of(fact.value);
    one["detail"] = text_of(fact.detail);
    one["advice"] = text_of(fact.advice);
    facts.append(one);
  }
  out["facts"] = facts;
  return out;
}

}  // namespace

void bind_inspect(nb::module_& module) {
  module.def("info", &info_of, "paths"_a, "expand"_a, "tokens"_a.none(), "dtype"_a.none(),
             "shape"_a.none(), "offset_bytes"_a.none(), "fortran_order"_a.none(),
             "format"_a.none());
  module.def("check", &check_of, "paths"_a, "expand"_a, "tokens"_a.none(), "dtype"_a.none(),
             "shape"_a.none(), "offset_bytes"_a.none(), "fortran_order"_a.none(), "format"_a.none(),
             "vocab"_a.none(), "eot"_a.none(), "nan"_a, "memory_bytes"_a);
  module.def("doctor", &doctor_of, "path"_a.none(), "memory_bytes"_a, "folder"_a);
}

}  // namespace lowtide::python
