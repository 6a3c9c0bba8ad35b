#include "lowtide/tokens.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "lend.h"
#include "store.h"

namespace lowtide::python {

using nb::literals::operator""_a;

namespace {

OwnedTokens open(const std::vector<nb::bytes>& paths, bool expand, std::optional<std::string> dtype,
                 std::optional<std::string> format, std::optional<std::uint64_t> eot,
                 std::uint64_t memory_bytes, const std::string& engine, const std::string& cache,
                 std::optional<std::uint64_t> gap_bytes, unsigned requests, const nb::object& store,
                 const nb::object& lister, const nb::bytes& cache_dir, std::uint64_t cache_bytes,
                 std::optional<std::string> key) {
  const std::vector<std::string> names = from_python(paths);
  const TokensOptions options{.dtype = std::move(dtype),
                              .format = std::move(format),
                              .eot = eot,
                              .key = std::move(key),
                              .read = read_options(memory_bytes, engine, cache, gap_bytes, requests,
                                                   cache_dir, cache_bytes),
                              .sign = sign_request(store),
                              .list = list_objects(lister)};
  const Unlocked unlocked;
  return expand ? Tokens::open(names.at(0), options) : Tokens::open(names, options);
}

void read(const OwnedTokens& tokens, std::uint64_t first, nb::handle out) {
  const OutBytes into(out);
  const Unlocked unlocked;
  tokens.read(first, into.rows(tokens.dtype().itemsize_bytes), into.bytes());
}

void take(const OwnedTokens& tokens, const RowArray& rows, nb::handle out) {
  const RowList list = row_list(rows);
  const OutBytes into(out);
  const Unlocked unlocked;
  tokens.take(list, into.bytes());
}

Batch read_windows(const OwnedTokens& tokens, RowList starts, std::uint64_t block_size,
                   const char* dtype) {
  Unlocked unlocked;
  return tokens.windows(starts, block_size, dtype, [&] { unlocked.hear_signals(); });
}

nb::object windows(const OwnedTokens& tokens, const RowArray& starts, std::uint64_t block_size,
                   const char* dtype) {
  return lend_windows(read_windows(tokens, row_list(starts), block_size, dtype), token_type(dtype));
}

// Throws nb::next_overload if the list is empty or holds anything but ints.
std::vector<std::int64_t> plain_ints(const nb::list& list) {
  const nb::ft_object_guard unchanged(list);  // the GIL, where there is one, does the same
  if (list.size() == 0) throw nb::next_overload();
  std::vector<std::int64_t> numbers;
  numbers.reserve(list.size());
  for (const nb::handle item : list) {
    std::int64_t number = 0;
    if (!nb::try_cast(item, number, /*convert=*/false)) throw nb::next_overload();
    numbers.push_back(number);
  }
  return numbers;
}

nb::object window_tensors(const OwnedTokens& tokens, RowList starts, std::uint64_t block_size,
                          const char* dtype, const nb::callable& make) {
  const Lending how{.type = token_type(dtype), .row_shape = {block_size}};
  const Batch batch = read_windows(tokens, starts, block_size, dtype);
  return nb::make_tuple(lend_tensor(batch, kX, how, make), lend_tensor(batch, kY, how, make));
}

nb::object batch(const OwnedTokens& tokens, std::uint64_t batch_size, std::uint64_t block_size,
                 std::uint64_t seed, const char* dtype) {
  const auto read = [&] {
    Unlocked unlocked;
    return tokens.batch(batch_size, block_size, seed, dtype, [&] { unlocked.hear_signals(); });
  };
  return lend_windows(read(), token_type(dtype));
}

void document_offsets(const OwnedTokens& tokens, std::uint64_t first, const OffsetArray& out) {
  const std::span<std::int64_t> into(out.data(), out.shape(0));
  const Unlocked unlocked;
  tokens.document_offsets(first, into);
}

nb::dict tokens_stats(const OwnedTokens& tokens) {
  Stats now;
  {
    const Unlocked unlocked;
    now = tokens.stats();
  }
  return stats_dict(now);
}

}  // namespace

void bind_tokens(nb::module_& module) {
  module.def("token_types", &token_types);
  nb::class_<OwnedTokens>(module, "Tokens")
      .def_static("open", &open, "paths"_a, nb::kw_only(), "expand"_a = false,
                  "dtype"_a = nb::none(), "format"_a = nb::none(), "eot"_a = nb::none(),
                  "memory_bytes"_a = 0, "engine"_a = "auto", "cache"_a = "auto",
                  "gap_bytes"_a = nb::none(), "requests"_a = ReadOptions{}.requests,
                  "store"_a = nb::none(), "lister"_a = nb::none(), "cache_dir"_a = nb::bytes("", 0),
                  "cache_bytes"_a = 0, "key"_a = nb::none())
      .def_prop_ro("size", &Tokens::size)
      .def_prop_ro("descr", [](const OwnedTokens& tokens) { return tokens.dtype().descr(); })
      .def_prop_ro("format", [](const OwnedTokens& tokens) { return tokens.format(); })
      .def_prop_ro("paths", [](const OwnedTokens& tokens) { return to_python(tokens.paths()); })
      .def_prop_ro("memory_bytes", &Tokens::memory_bytes)
      .def_prop_ro("closed", &Tokens::closed)
      .def("read", &read, "first"_a, "out"_a,
           nb::sig("def read(self, first: int, out: NDArray[typing.Any]) -> None"))
      .def("take", &take, "rows"_a, "out"_a,
           nb::sig("def take(self, rows: NDArray[typing.Any], out: NDArray[typing.Any]) -> None"))
      .def("windows", &windows, "starts"_a, "block_size"_a, "dtype"_a,
           nb::sig("def windows(self, starts: NDArray[typing.Any], block_size: int, dtype: str) "
                   "-> tuple[NDArray[typing.Any], NDArray[typing.Any], Batch]"))
      .def(
          "window_tensors",
          [](const OwnedTokens& tokens, const nb::list& starts, std::uint64_t block_size,
             const char* dtype, const nb::callable& make) {
            return window_tensors(tokens, plain_ints(starts), block_size, dtype, make);
          },
          "starts"_a, "block_size"_a, "dtype"_a, "make"_a,
          nb::sig("def window_tensors(self, starts: list[int], block_size: int, "
                  "dtype: str, make: collections.abc.Callable[[object], typing.Any]) "
                  "-> tuple[typing.Any, typing.Any]"))
      .def(
          "window_tensors",
          [](const OwnedTokens& tokens, const RowArray& starts, std::uint64_t block_size,
             const char* dtype, const nb::callable& make) {
            if (starts.shape(0) == 0) throw nb::next_overload();
            return window_tensors(tokens, row_list(starts), block_size, dtype, make);
          },
          "starts"_a, "block_size"_a, "dtype"_a, "make"_a,
          nb::sig("def window_tensors(self, starts: NDArray[typing.Any], block_size: int, "
                  "dtype: str, make: collections.abc.Callable[[object], typing.Any]) "
                  "-> tuple[typing.Any, typing.Any]"))
      .def("batch", &batch, "batch_size"_a, "block_size"_a, "seed"_a, "dtype"_a,
           nb::sig("def batch(self, batch_size: int, block_size: int, seed: int, dtype: str) "
                   "-> tuple[NDArray[typing.Any], NDArray[typing.Any], Batch]"))
      .def("documents", &Tokens::documents, nb::call_guard<Unlocked>())
      .def("document_offsets", &document_offsets, "first"_a, "out"_a)
      .def("stats", &tokens_stats, nb::sig("def stats(self) -> dict[str, typing.Any]"))
      .def("close", &Tokens::close, nb::call_guard<Unlocked>());
}

}  // namespace lowtide::python
