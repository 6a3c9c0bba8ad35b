#include "lowtide/loader.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "consumer.h"
#include "lend.h"
#include "state.h"

namespace lowtide::python {

using nb::literals::operator""_a;

namespace {

// A Loader and the arrays it borrows: rows, offsets.
struct PyLoader : Consumer<Loader> {
  PyLoader(Loader made, std::vector<Lending> lent, bool has_windows, nb::object held)
      : Consumer(std::move(made), "this loader"),
        columns(std::move(lent)),
        windows(has_windows),
        borrowed(std::move(held)) {}
  // The reader borrows from the arrays, so it must end before them.
  ~PyLoader() { close(); }

  std::vector<Lending> columns;
  bool windows;
  nb::object borrowed;
};

// Returns a tuple of the columns and, as its last entry, the batch; None for an empty batch. `make`
// makes columns of DLPack capsules; without it they are arrays.
nb::object lend(const PyLoader& self, Batch batch, const nb::object& make) {
  if (!batch) return nb::none();
  if (make.is_none() && self.windows) return lend_windows(std::move(batch), *self.columns[0].type);
  const nb::object lease = nb::cast(batch, nb::rv_policy::copy);
  nb::list lent;
  for (std::size_t i = 0; i < self.columns.size(); ++i) {
    lent.append(make.is_none() ? lend_array(batch, i, self.columns[i], lease)
                               : lend_tensor(batch, i, self.columns[i], make));
  }
  lent.append(lease);
  return nb::tuple(lent);
}

// None at the end of `epoch` if it is given, else of all epochs.
nb::object next(PyLoader& self, const nb::object& make, std::optional<std::uint64_t> epoch) {
  Batch batch = self.wait([&](Loader& loader) -> std::optional<Batch> {
    if (epoch.has_value() && loader.epoch() != *epoch) return Batch();
    return loader.next_for(kSignalCheck);
  });
  return lend(self, std::move(batch), make);
}

// The next batch across epochs if it has been read; None if it has not, and at the end.
nb::object next_ready(PyLoader& self, const nb::object& make) {
  Batch batch = self.alone([](Loader& loader) {
    return loader.next_for(std::chrono::milliseconds(0)).value_or(Batch());
  });
  return lend(self, std::move(batch), make);
}

template <class Make>
PyLoader* make(Make open, std::vector<Lending> columns, bool windows, nb::object borrowed) {
  std::optional<Loader> made;
  {
    const Unlocked unlocked;
    made.emplace(open());
  }
  return new PyLoader(std::move(*made), std::move(columns), windows, std::move(borrowed));
}

// Rows are None, an array of integers or (first, step, count).
LoaderOptions with_lists(LoaderOptions options, const nb::object& rows, const nb::object& weights) {
  using Range = std::tuple<std::uint64_t, std::int64_t, std::uint64_t>;
  if (nb::isinstance<nb::tuple>(rows)) {
    const auto [first, step, count] = nb::cast<Range>(rows);
    options.rows = RowRange{first, step, count};
  } else if (!rows.is_none()) {
    options.rows = row_list(nb::cast<RowArray>(rows));
  }
  if (!weights.is_none()) {
    const auto list = nb::cast<nb::ndarray<const double, nb::ndim<1>, nb::c_contig>>(weights);
    options.weights = std::span(list.data(), list.size());
  }
  return options;
}

PyLoader* open_windows(const std::vector<std::pair<OwnedTokens, double>>& sources, bool mixture,
                       const LoaderOptions& told, const nb::object& rows,
                       const nb::object& weights) {
  const LoaderOptions options = with_lists(told, rows, weights);
  const nb::dlpack::dtype type = token_type(options.dtype);
  const Lending window{.type = type, .row_shape = {options.block_size}};
  const auto open = [&] {
    if (!mixture) return Loader(sources.at(0).first, options);
    const std::vector<std::pair<Tokens, double>> mixed(sources.begin(), sources.end());
    return Loader(mixed, options);
  };
  return make(open, {window, window}, true, rows);
}

LoaderColumn column_of(nb::handle told) {
  if (nb::isinstance<OwnedArray>(told)) return Array(nb::cast<const OwnedArray&>(told));
  if (nb::isinstance<OwnedTokens>(told)) return TokenDocuments{nb::cast<const OwnedTokens&>(told)};
  if (nb::isinstance<OwnedCsr>(told)) return Csr(nb::cast<const OwnedCsr&>(told));
  RaggedArrays ragged;
  for (const nb::handle value : nb::handle(told[0])) {
    ragged.values.emplace_back(nb::cast<const OwnedArray&>(value));
  }
  const auto offsets =
      nb::cast<nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig>>(told[1]);
  ragged.offsets = std::span(offsets.data(), offsets.size());
  ragged.claim_offsets = true;  // a copy, or read from a file
  return ragged;
}

// A column is an Array, Tokens (its documents), a Csr, or (list of Arrays, offsets). `lent` has for
// each array of a batch the name of its type, or "", and the shape of a row.
PyLoader* open_columns(const std::vector<std::pair<nb::list, double>>& sources, bool mixture,
                       const LoaderOptions& told, const nb::object& rows, const nb::object& weights,
                       const std::vector<std::pair<std::string, std::vector<std::size_t>>>& lent) {
  const LoaderOptions options = with_lists(told, rows, weights);
  std::vector<Lending> columns;
  for (const auto& [type, row_shape] : lent) {
    columns.push_back({type.empty() ? std::nullopt : dlpack_type(type), row_shape});
  }
  std::vector<std::pair<LoaderColumns, double>> all;
  for (const auto& [source, weight] : sources) {
    LoaderColumns& here = all.emplace_back(LoaderColumns(), weight).first;
    for (const nb::handle column : source) here.push_back(column_of(column));
  }
  const auto open = [&] {
    return mixture ? Loader(all, options) : Loader(all.at(0).first, options);
  };
  nb::list borrowed;
  for (const auto& [source, weight] : sources) borrowed.append(source);
  return make(open, std::move(columns), false, nb::make_tuple(rows, borrowed));
}

nb::object when(PyLoader& self, std::uint64_t row, std::optional<std::uint64_t> epoch,
                std::uint64_t source) {
  const auto found = self.alone(
      [&](Loader& loader) { return loader.when(row, epoch.value_or(loader.epoch()), source); });
  if (!found.has_value()) return nb::none();
  return nb::make_tuple(found->step, found->rank, found->row);
}

void bind_options(nb::module_& module) {
  nb::class_<LoaderOptions>(module, "LoaderOptions")
      .def(nb::init<>())
      .def_rw("batch_size", &LoaderOptions::batch_size)
      .def_rw("block_size", &LoaderOptions::block_size)
      .def_prop_rw(
          "order", [](const LoaderOptions& self) { return std::string(order_word(self.order)); },
          [](LoaderOptions& self, const std::string& word) { self.order = parse_order(word); })
      .def_rw("seed", &LoaderOptions::seed)
      .def_rw("rank", &LoaderOptions::rank)
      .def_rw("world_size", &LoaderOptions::world_size)
      .def_rw("epochs", &LoaderOptions::epochs, nb::arg().none())
      .def_rw("drop_last", &LoaderOptions::drop_last)
      .def_rw("prefetch", &LoaderOptions::prefetch, nb::arg().none())
      .def_rw("dtype", &LoaderOptions::dtype)
      .def_rw("memory_bytes", &LoaderOptions::memory_bytes)
      .def_rw("separate_documents", &LoaderOptions::separate_documents)
      .def(
          "deliver_dense",
          [](LoaderOptions& self, const std::string& dtype,
             std::optional<std::vector<std::uint64_t>> columns) {
            self.dense = DenseOptions{dtype, std::move(columns)};
          },
          "dtype"_a, "columns"_a.none())
      .def_rw("claim_rows", &LoaderOptions::claim_rows)
      .def_rw("pin_memory", &LoaderOptions::pin_memory)
      .def_rw("fenced", &LoaderOptions::fenced);
}

}  // namespace

void bind_loader(nb::module_& module) {
  bind_options(module);
  module.def(
      "check_offsets",
      [](const nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig>& offsets,
         std::uint64_t values) {
        const Unlocked unlocked;
        check_offsets(std::span(offsets.data(), offsets.size()), values);
      },
      "offsets"_a, "values"_a);
  module.def("why_no_pinning", &why_no_pinning);
  nb::class_<PyLoader> bound(module, "Loader", nb::is_weak_referenceable());
  bound
      .def_static("open_windows", &open_windows, nb::rv_policy::take_ownership, "sources"_a,
                  nb::kw_only(), "mixture"_a, "options"_a, "rows"_a.none(), "weights"_a.none())
      .def_static(
          "open_columns", &open_columns, nb::rv_policy::take_ownership, "sources"_a, nb::kw_only(),
          "mixture"_a, "options"_a, "rows"_a.none(), "weights"_a.none(), "lent"_a,
          nb::sig("def open_columns(sources: collections.abc.Sequence[tuple[list[typing.Any]"
                  ", float]], *, mixture: bool, options: LoaderOptions, rows: object | None"
                  ", weights: object | None, lent: collections.abc.Sequence[tuple[str, "
                  "collections.abc.Sequence[int]]]) -> Loader"))
      .def("next", &next, "make"_a.none(), "epoch"_a.none(),
           nb::sig("def next(self, make: collections.abc.Callable[[object], typing.Any] | None, "
                   "epoch: int | None) -> tuple[typing.Any, ...] | None"))
      .def("next_ready", &next_ready, "make"_a.none(),
           nb::sig("def next_ready(self, make: collections.abc.Callable[[object], typing.Any] | "
                   "None) -> tuple[typing.Any, ...] | None"))
      .def("steps", asks<PyLoader>(&Loader::steps))
      .def("steps_left", asks<PyLoader>(&Loader::steps_left))
      .def("epoch", asks<PyLoader>(&Loader::epoch))
      .def("step", asks<PyLoader>(&Loader::step))
      .def(
          "seek",
          [](PyLoader& self, std::uint64_t step, std::optional<std::uint64_t> epoch) {
            self.alone([&](Loader& loader) { loader.seek(step, epoch); });
          },
          "step"_a, "epoch"_a.none())
      .def(
          "skip",
          [](PyLoader& self, std::uint64_t first, std::uint64_t last,
             std::optional<std::uint64_t> epoch) {
            self.alone([&](Loader& loader) { loader.skip(first, last, epoch); });
          },
          "first"_a, "last"_a, "epoch"_a.none())
      .def("when", &when, "row"_a, "epoch"_a.none(), "source"_a,
           nb::sig("def when(self, row: int, epoch: int | None, source: int) -> "
                   "tuple[int, int, int] | None"))
      .def(
          "stats", [](PyLoader& self) { return stats_dict(asks<PyLoader>(&Loader::stats)(self)); },
          nb::sig("def stats(self) -> dict[str, typing.Any]"))
      .def_prop_ro("closed", [](const PyLoader& self) { return self.closed(); })
      .def("close", &PyLoader::close);
  bind_state<Loader>(bound);
}

}  // namespace lowtide::python
