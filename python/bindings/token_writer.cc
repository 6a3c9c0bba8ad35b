#include "lowtide/token_writer.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "bindings.h"

namespace lowtide::python {

using nb::literals::operator""_a;

namespace {

using OwnedTokenWriter = Owned<TokenWriter>;

OwnedTokenWriter create_token_writer(const nb::bytes& path, std::string format, std::string dtype,
                                     bool append, std::uint64_t memory_bytes) {
  const std::string name = string_of(path);
  const TokenWriterOptions options{.format = std::move(format),
                                   .dtype = std::move(dtype),
                                   .append = append,
                                   .memory_bytes = memory_bytes};
  const Unlocked unlocked;
  return TokenWriter::create(name, options);
}

template <typename Id>
TokenList ids_of(const RowArray& tokens) {
  return std::span<const Id>(static_cast<const Id*>(tokens.data()), tokens.shape(0));
}

// Borrowed. Throws nb::type_error for anything but integers.
TokenList token_list(const RowArray& tokens) {
  if (tokens.dtype() == nb::dtype<std::int64_t>()) return ids_of<std::int64_t>(tokens);
  if (tokens.dtype() == nb::dtype<std::uint16_t>()) return ids_of<std::uint16_t>(tokens);
  if (tokens.dtype() == nb::dtype<std::int32_t>()) return ids_of<std::int32_t>(tokens);
  if (tokens.dtype() == nb::dtype<std::uint32_t>()) return ids_of<std::uint32_t>(tokens);
  if (tokens.dtype() == nb::dtype<std::uint64_t>()) return ids_of<std::uint64_t>(tokens);
  if (tokens.dtype() == nb::dtype<std::int16_t>()) return ids_of<std::int16_t>(tokens);
  if (tokens.dtype() == nb::dtype<std::uint8_t>()) return ids_of<std::uint8_t>(tokens);
  if (tokens.dtype() == nb::dtype<std::int8_t>()) return ids_of<std::int8_t>(tokens);
  throw nb::type_error("tokens must be integers in native byte order");
}

void append_tokens(OwnedTokenWriter& writer, const RowArray& tokens) {
  const TokenList list = token_list(tokens);
  const Unlocked unlocked;
  writer.append(list);
}

nb::dict writer_claims(const OwnedTokenWriter& writer) {
  nb::dict claims;
  for (const auto& [name, bytes] : writer.memory_claims()) claims[nb::str(name.c_str())] = bytes;
  return claims;
}

}  // namespace

void bind_token_writer(nb::module_& module) {
  nb::class_<OwnedTokenWriter>(module, "TokenWriter")
      .def_static("create", &create_token_writer, "path"_a, nb::kw_only(), "format"_a, "dtype"_a,
                  "append"_a = false, "memory_bytes"_a = 0)
      .def("append", &append_tokens, "tokens"_a,
           nb::sig("def append(self, tokens: NDArray[typing.Any]) -> None"))
      .def_prop_ro("tokens", &TokenWriter::tokens)
      .def_prop_ro("documents", &TokenWriter::documents)
      .def_prop_ro("paths",
                   [](const OwnedTokenWriter& writer) { return to_python(writer.paths()); })
      .def_prop_ro("format", [](const OwnedTokenWriter& writer) { return writer.format(); })
      .def_prop_ro("descr", [](const OwnedTokenWriter& writer) { return writer.dtype().descr(); })
      .def_prop_ro("memory_bytes", &TokenWriter::memory_bytes)
      .def("memory_claims", &writer_claims, nb::sig("def memory_claims(self) -> dict[str, int]"))
      .def("close", &TokenWriter::close, nb::call_guard<Unlocked>())
      .def("abandon", &TokenWriter::abandon, nb::call_guard<Unlocked>())
      .def_prop_ro("closed", &TokenWriter::closed);
}

}  // namespace lowtide::python
