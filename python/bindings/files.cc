// Files and objects whose bytes Python looks at, to find out where arrays are in them.
#include "lowtide/files.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "store.h"

namespace lowtide::python {

using nb::literals::operator""_a;

namespace {

// Filled while it is new; Python sees it afterwards.
std::span<std::byte> contents(const nb::bytes& made) {
  return {reinterpret_cast<std::byte*>(PyBytes_AsString(made.ptr())), made.size()};
}

std::vector<nb::bytes> read_ranges(
    const OwnedFile& file, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& ranges) {
  std::vector<nb::bytes> found;
  std::vector<FileRange> wanted;
  for (const auto& [offset, size] : ranges) {
    found.push_back(
        nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size))));
    if (!found.back().is_valid()) throw nb::python_error();
    wanted.push_back({offset, contents(found.back())});
  }
  const Unlocked unlocked;
  file.read(wanted);
  return found;
}

OwnedFile open_file(OwnedOpener& opener, const nb::bytes& path) {
  const std::string name = string_of(path);
  const Unlocked unlocked;
  return opener.open(name);
}

std::optional<OwnedFile> open_if_there(OwnedOpener& opener, const nb::bytes& path) {
  const std::string name = string_of(path);
  std::optional<FileReader> found;
  {
    const Unlocked unlocked;
    found = opener.open_if_there(name);
  }
  if (!found) return std::nullopt;
  return OwnedFile(std::move(*found));
}

std::vector<nb::bytes> names_in(const OwnedOpener& opener, const nb::bytes& folder) {
  const std::string name = string_of(folder);
  std::vector<std::string> names;
  {
    const Unlocked unlocked;
    names = opener.names_in(name);
  }
  return to_python(names);
}

}  // namespace

void bind_files(nb::module_& module) {
  nb::class_<OwnedFile>(module, "FileReader")
      .def_prop_ro("path", [](const OwnedFile& file) { return bytes_of(file.file().path); })
      .def_prop_ro("size_bytes", [](const OwnedFile& file) { return file.file().size_bytes; })
      .def("read", &read_ranges, "ranges"_a,
           nb::sig("def read(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]"));
  nb::class_<OwnedOpener>(module, "FileOpener")
      .def(
          "__init__",
          [](OwnedOpener* made, const nb::object& store, const nb::object& lister) {
            new (made) OwnedOpener(FileOpener(sign_request(store), list_objects(lister)));
          },
          "store"_a = nb::none(), "lister"_a = nb::none())
      .def("open", &open_file, "path"_a)
      .def("open_if_there", &open_if_there, "path"_a)
      .def("names_in", &names_in, "folder"_a);
  module.def(
      "path_in",
      [](const nb::bytes& folder, const nb::bytes& name) {
        return bytes_of(path_in(string_of(folder), string_of(name)));
      },
      "folder"_a, "name"_a);
}

}  // namespace lowtide::python
