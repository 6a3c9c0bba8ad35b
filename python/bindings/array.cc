#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "store.h"

namespace lowtide::python {

using nb::literals::operator""_a;

RowList row_list(const RowArray& rows) {
  const std::size_t count = rows.shape(0);
  const void* const data = rows.data();
  if (rows.dtype() == nb::dtype<std::int64_t>()) {
    return std::span(static_cast<const std::int64_t*>(data), count);
  }
  if (rows.dtype() == nb::dtype<std::uint64_t>()) {
    return std::span(static_cast<const std::uint64_t*>(data), count);
  }
  if (rows.dtype() == nb::dtype<std::int32_t>()) {
    return std::span(static_cast<const std::int32_t*>(data), count);
  }
  if (rows.dtype() == nb::dtype<std::uint32_t>()) {
    return std::span(static_cast<const std::uint32_t*>(data), count);
  }
  throw nb::type_error("row numbers must be int64, uint64, int32 or uint32");
}

std::vector<std::string> from_python(const std::vector<nb::bytes>& paths) {
  std::vector<std::string> names;
  names.reserve(paths.size());
  for (const nb::bytes& path : paths) names.push_back(string_of(path));
  return names;
}

ReadOptions read_options(std::uint64_t memory_bytes, const std::string& engine,
                         const std::string& cache, std::optional<std::uint64_t> gap_bytes,
                         unsigned requests, const nb::bytes& cache_dir, std::uint64_t cache_bytes) {
  return {.memory_bytes = memory_bytes,
          .engine = parse_engine(engine),
          .cache = parse_cache(cache),
          .gap_bytes = gap_bytes,
          .requests = requests,
          .cache_dir = string_of(cache_dir),
          .cache_bytes = cache_bytes};
}

std::vector<nb::bytes> to_python(const std::vector<std::string>& paths) {
  std::vector<nb::bytes> names;
  names.reserve(paths.size());
  for (const std::string& path : paths) names.emplace_back(path.data(), path.size());
  return names;
}

nb::dict stats_dict(const Stats& now) {
  nb::dict claims;
  for (const auto& [name, bytes] : now.memory_claims) {
    const auto key = nb::str(name.c_str());
    claims[key] = claims.contains(key) ? nb::cast<std::uint64_t>(claims[key]) + bytes : bytes;
  }
  nb::dict memory;
  memory["limit"] = now.memory_limit_bytes;
  memory["claims"] = claims;
  memory["held_by_you"] = now.held_by_you_bytes;
  nb::dict all;
  all["bytes_asked"] = now.bytes_asked;
  all["bytes_read"] = now.bytes_read;
  all["reads"] = now.reads;
  all["merged"] = now.merged;
  all["wait_ns"] = now.wait_ns;
  all["gap_bytes"] = now.gap_bytes;
  all["engine"] = now.engine;
  all["engine_reason"] = now.engine_reason;
  all["cache"] = now.cache;
  all["cache_reason"] = now.cache_reason;
  all["layout"] = now.layout;
  all["memory"] = memory;
  return all;
}

namespace {

OwnedArray open(const std::vector<nb::bytes>& paths, bool expand, std::optional<std::string> dtype,
                std::optional<std::vector<std::uint64_t>> shape,
                std::optional<std::uint64_t> offset_bytes, std::optional<bool> fortran_order,
                std::uint64_t memory_bytes, const std::string& engine, const std::string& cache,
                bool headerless, std::optional<std::uint64_t> gap_bytes, unsigned requests,
                const nb::object& store, const nb::object& lister, const nb::bytes& cache_dir,
                std::uint64_t cache_bytes, std::optional<std::string> key) {
  const std::vector<std::string> names = from_python(paths);
  const OpenOptions options{.dtype = std::move(dtype),
                            .shape = std::move(shape),
                            .offset_bytes = offset_bytes,
                            .fortran_order = fortran_order,
                            .headerless = headerless,
                            .key = std::move(key),
                            .read = read_options(memory_bytes, engine, cache, gap_bytes, requests,
                                                 cache_dir, cache_bytes),
                            .sign = sign_request(store),
                            .list = list_objects(lister)};
  const Unlocked unlocked;
  return expand ? Array::open(names.at(0), options) : Array::open(names, options);
}

template <typename Number>
using Numbers = nb::ndarray<const Number, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename Number>
std::vector<Number> copied(const Numbers<Number>& numbers) {
  return {numbers.data(), numbers.data() + numbers.shape(0)};
}

std::vector<LocatedFile> located(const std::vector<const OwnedFile*>& files) {
  std::vector<LocatedFile> found;
  found.reserve(files.size());
  for (const OwnedFile* file : files) found.push_back(file->file());
  return found;
}

OwnedArray open_chunks(const std::vector<const OwnedFile*>& files, std::string format,
                       std::string dtype, std::vector<std::uint64_t> shape,
                       std::vector<std::uint64_t> chunk_shape,
                       const Numbers<std::uint64_t>& offsets_bytes, const nb::bytes& fill,
                       std::uint64_t memory_bytes, const std::string& engine,
                       const std::string& cache, std::optional<std::uint64_t> gap_bytes,
                       unsigned requests, const nb::bytes& cache_dir, std::uint64_t cache_bytes) {
  const auto* const value = reinterpret_cast<const std::byte*>(fill.c_str());
  ArrayChunks chunks{.format = std::move(format),
                     .dtype = std::move(dtype),
                     .shape = std::move(shape),
                     .chunk_shape = std::move(chunk_shape),
                     .files = located(files),
                     .offsets_bytes = copied(offsets_bytes),
                     .fill = {value, value + fill.size()}};
  const ReadOptions options =
      read_options(memory_bytes, engine, cache, gap_bytes, requests, cache_dir, cache_bytes);
  const Unlocked unlocked;
  return Array::open_chunks(std::move(chunks), options);
}

OwnedArray open_stretches(const std::vector<const OwnedFile*>& files, std::string format,
                          std::string dtype, std::vector<std::uint64_t> row_shape,
                          const Numbers<std::uint32_t>& file_numbers,
                          const Numbers<std::uint64_t>& offsets_bytes,
                          const Numbers<std::uint64_t>& rows, std::uint64_t memory_bytes,
                          const std::string& engine, const std::string& cache,
                          std::optional<std::uint64_t> gap_bytes, unsigned requests,
                          const nb::bytes& cache_dir, std::uint64_t cache_bytes) {
  ArrayStretches stretches{.format = std::move(format),
                           .dtype = std::move(dtype),
                           .row_shape = std::move(row_shape),
                           .files = located(files),
                           .file_numbers = copied(file_numbers),
                           .offsets_bytes = copied(offsets_bytes),
                           .rows = copied(rows)};
  const ReadOptions options =
      read_options(memory_bytes, engine, cache, gap_bytes, requests, cache_dir, cache_bytes);
  const Unlocked unlocked;
  return Array::open_stretches(std::move(stretches), options);
}

void read(const OwnedArray& array, std::uint64_t first, nb::handle out) {
  const OutBytes into(out);
  const Unlocked unlocked;
  array.read(first, into.rows(array.row_bytes()), into.bytes());
}

void take(const OwnedArray& array, const RowArray& rows, nb::handle out) {
  const RowList list = row_list(rows);
  const OutBytes into(out);
  const Unlocked unlocked;
  array.take(list, into.bytes());
}

void take_part(const OwnedArray& array, const RowArray& rows, std::uint64_t offset_bytes,
               std::uint64_t size_bytes, nb::handle out) {
  const RowList list = row_list(rows);
  const OutBytes into(out);
  const Unlocked unlocked;
  array.take_part(list, offset_bytes, size_bytes, into.bytes());
}

nb::object batches(const OwnedArray& array, std::uint64_t batch_size, const std::string& order,
                   const nb::object& rows, std::uint64_t seed, std::uint64_t epoch,
                   std::uint64_t rank, std::uint64_t world_size, bool drop_last, bool claim_rows,
                   std::uint64_t beside_bytes) {
  BatchOptions options{.batch_size = batch_size,
                       .order = parse_order(order),
                       .rows = std::nullopt,
                       .claim_rows = claim_rows,
                       .beside_bytes = beside_bytes,
                       .seed = seed,
                       .epoch = epoch,
                       .rank = rank,
                       .world_size = world_size,
                       .drop_last = drop_last};
  return make_batches(array, std::move(options), rows);
}

OwnedArray flat(const OwnedArray& array, std::uint64_t memory_bytes) {
  const Unlocked unlocked;
  return array.flat(memory_bytes);
}

nb::dict array_stats(const OwnedArray& array) {
  Stats now;
  {
    const Unlocked unlocked;
    now = array.stats();
  }
  return stats_dict(now);
}

}  // namespace

void bind_array(nb::module_& module) {
  nb::class_<OwnedArray>(module, "Array")
      .def_static("open", &open, "paths"_a, nb::kw_only(), "expand"_a = false,
                  "dtype"_a = nb::none(), "shape"_a = nb::none(), "offset_bytes"_a = nb::none(),
                  "fortran_order"_a = nb::none(), "memory_bytes"_a = 0, "engine"_a = "auto",
                  "cache"_a = "auto", "headerless"_a = false, "gap_bytes"_a = nb::none(),
                  "requests"_a = ReadOptions{}.requests, "store"_a = nb::none(),
                  "lister"_a = nb::none(), "cache_dir"_a = nb::bytes("", 0), "cache_bytes"_a = 0,
                  "key"_a = nb::none())
      .def_static(
          "open_chunks", &open_chunks, "files"_a, nb::kw_only(), "format"_a, "dtype"_a, "shape"_a,
          "chunk_shape"_a, "offsets_bytes"_a, "fill"_a, "memory_bytes"_a = 0, "engine"_a = "auto",
          "cache"_a = "auto", "gap_bytes"_a = nb::none(), "requests"_a = ReadOptions{}.requests,
          "cache_dir"_a = nb::bytes("", 0), "cache_bytes"_a = 0,
          nb::sig("def open_chunks(files: Sequence[FileReader], *, format: str, dtype: str, "
                  "shape: Sequence[int], chunk_shape: Sequence[int], "
                  "offsets_bytes: NDArray[typing.Any], fill: bytes, memory_bytes: int = 0, "
                  "engine: str = 'auto', cache: str = 'auto', gap_bytes: int | None = None, "
                  "requests: int = 128, cache_dir: bytes = b'', cache_bytes: int = 0) -> Array"))
      .def_static(
          "open_stretches", &open_stretches, "files"_a, nb::kw_only(), "format"_a, "dtype"_a,
          "row_shape"_a, "file_numbers"_a, "offsets_bytes"_a, "rows"_a, "memory_bytes"_a = 0,
          "engine"_a = "auto", "cache"_a = "auto", "gap_bytes"_a = nb::none(),
          "requests"_a = ReadOptions{}.requests, "cache_dir"_a = nb::bytes("", 0),
          "cache_bytes"_a = 0,
          nb::sig("def open_stretches(files: Sequence[FileReader], *, format: str, dtype: str, "
                  "row_shape: Sequence[int], file_numbers: NDArray[typing.Any], "
                  "offsets_bytes: NDArray[typing.Any], rows: NDArray[typing.Any], "
                  "memory_bytes: int = 0, engine: str = 'auto', cache: str = 'auto', "
                  "gap_bytes: int | None = None, requests: int = 128, cache_dir: bytes = b'', "
                  "cache_bytes: int = 0) -> Array"))
      .def_prop_ro("descr", [](const OwnedArray& array) { return array.dtype().descr(); })
      .def_prop_ro(
          "shape", [](const OwnedArray& array) { return nb::tuple(nb::cast(array.shape())); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("extension", [](const OwnedArray& array) { return array.dtype().extension; })
      .def_prop_ro("format", [](const OwnedArray& array) { return array.format(); })
      .def_prop_ro("fortran_order", &Array::fortran_order)
      .def_prop_ro("rows", &Array::rows)
      .def_prop_ro("row_bytes", &Array::row_bytes)
      .def_prop_ro("paths", [](const OwnedArray& array) { return to_python(array.paths()); })
      .def("file_rows", &Array::file_rows)
      .def_prop_ro("memory_bytes", &Array::memory_bytes)
      .def_prop_ro("closed", &Array::closed)
      .def("read", &read, "first"_a, "out"_a,
           nb::sig("def read(self, first: int, out: NDArray[typing.Any]) -> None"))
      .def("take", &take, "rows"_a, "out"_a,
           nb::sig("def take(self, rows: NDArray[typing.Any], out: NDArray[typing.Any]) -> None"))
      .def("take_part", &take_part, "rows"_a, "offset_bytes"_a, "size_bytes"_a, "out"_a,
           nb::sig("def take_part(self, rows: NDArray[typing.Any], offset_bytes: int, "
                   "size_bytes: int, out: NDArray[typing.Any]) -> None"))
      .def(
          "batches", &batches, "batch_size"_a, nb::kw_only(), "order"_a, "rows"_a.none(), "seed"_a,
          "epoch"_a, "rank"_a, "world_size"_a, "drop_last"_a, "claim_rows"_a, "beside_bytes"_a,
          nb::sig(
              "def batches(self, batch_size: int, *, order: str, rows: NDArray[typing.Any] | None, "
              "seed: int, epoch: int, rank: int, world_size: int, drop_last: bool, "
              "claim_rows: bool, beside_bytes: int) -> Batches"))
      .def("flat", &flat, "memory_bytes"_a)
      .def("stats", &array_stats, nb::sig("def stats(self) -> dict[str, typing.Any]"))
      .def("close", &Array::close, nb::call_guard<Unlocked>());
}

}  // namespace lowtide::python
