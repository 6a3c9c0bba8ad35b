#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "consumer.h"
#include "lend.h"
#include "lowtide/tokens.h"
#include "state.h"

namespace lowtide::python {

using nb::literals::operator""_a;

namespace {

struct PyLoader : Consumer<Loader> {
  PyLoader(Loader made, nb::dlpack::dtype element)
      : Consumer(std::move(made), "this loader"), type(element) {}

  nb::dlpack::dtype type;
};

// Returns (x, y, batch), or None at the end of `epoch` if it is given, else of all epochs. `make`
// makes x and y of DLPack capsules; without it they are arrays.
nb::object next(PyLoader& self, const nb::object& make, std::optional<std::uint64_t> epoch) {
  Batch batch = self.wait([&](Loader& loader) -> std::optional<Batch> {
    if (epoch.has_value() && loader.epoch() != *epoch) return Batch();
    return loader.next_for(kSignalCheck);
  });
  if (!batch) return nb::none();
  if (make.is_none()) return lend_arrays(std::move(batch), self.type);
  nb::object x = lend_tensor(batch, kX, self.type, make);
  nb::object y = lend_tensor(batch, kY, self.type, make);
  return nb::make_tuple(std::move(x), std::move(y), std::move(batch));
}

using Sources = std::vector<std::pair<OwnedTokens, double>>;

PyLoader* make(const Sources& sources, bool mixture, std::uint64_t batch_size,
               std::uint64_t block_size, const std::string& order, std::uint64_t seed,
               std::uint64_t rank, std::uint64_t world_size, std::optional<std::uint64_t> epochs,
               bool drop_last, std::optional<std::uint64_t> prefetch, const std::string& dtype,
               std::uint64_t memory_bytes, bool separate_documents) {
  const LoaderOptions options{.batch_size = batch_size,
                              .block_size = block_size,
                              .order = parse_order(order),
                              .seed = seed,
                              .rank = rank,
                              .world_size = world_size,
                              .epochs = epochs,
                              .drop_last = drop_last,
                              .prefetch = prefetch,
                              .dtype = dtype,
                              .memory_bytes = memory_bytes,
                              .separate_documents = separate_documents};
  const nb::dlpack::dtype type = token_type(dtype);
  std::optional<Loader> made;
  {
    const Unlocked unlocked;
    if (mixture) {
      const std::vector<std::pair<Tokens, double>> mixed(sources.begin(), sources.end());
      made.emplace(mixed, options);
    } else {
      made.emplace(sources.at(0).first, options);
    }
  }
  return new PyLoader(std::move(*made), type);
}

nb::object when(PyLoader& self, std::uint64_t token, std::optional<std::uint64_t> epoch,
                std::uint64_t source) {
  const auto found = self.alone(
      [&](Loader& loader) { return loader.when(token, epoch.value_or(loader.epoch()), source); });
  if (!found.has_value()) return nb::none();
  return nb::make_tuple(found->step, found->rank, found->row);
}

}  // namespace

void bind_loader(nb::module_& module) {
  nb::class_<PyLoader> bound(module, "Loader", nb::is_weak_referenceable());
  bound
      .def_static("open", &make, nb::rv_policy::take_ownership, "sources"_a, nb::kw_only(),
                  "mixture"_a, "batch_size"_a, "block_size"_a, "order"_a, "seed"_a, "rank"_a,
                  "world_size"_a, "epochs"_a.none(), "drop_last"_a, "prefetch"_a.none(), "dtype"_a,
                  "memory_bytes"_a, "separate_documents"_a)
      .def("next", &next, "make"_a.none(), "epoch"_a.none(),
           nb::sig("def next(self, make: collections.abc.Callable[[object], typing.Any] | None, "
                   "epoch: int | None) -> tuple[typing.Any, typing.Any, Batch] | None"))
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
      .def("when", &when, "token"_a, "epoch"_a.none(), "source"_a,
           nb::sig("def when(self, token: int, epoch: int | None, source: int) -> "
                   "tuple[int, int, int] | None"))
      .def(
          "stats", [](PyLoader& self) { return stats_dict(asks<PyLoader>(&Loader::stats)(self)); },
          nb::sig("def stats(self) -> dict[str, typing.Any]"))
      .def_prop_ro("closed", [](const PyLoader& self) { return self.closed(); })
      .def("close", &PyLoader::close);
  bind_state<Loader>(bound);
}

}  // namespace lowtide::python
