// state.h - a State for Python: a dict of plain values.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "lowtide/state.h"

namespace lowtide::python {

[[nodiscard]] inline nb::dict state_dict(const State& state) {
  nb::list skipped;
  for (const auto& [epoch, first, last] : state.skipped) {
    nb::list entry;
    for (const std::uint64_t value : {epoch, first, last}) entry.append(value);
    skipped.append(entry);
  }
  nb::dict all;
  all["format"] = state.format;
  all["fingerprint"] = state.fingerprint.value_or(0);
  all["block_size"] = state.block_size;
  all["order"] = state.order;
  all["seed"] = state.seed;
  all["epoch"] = state.epoch;
  all["position"] = state.position;
  all["step"] = state.step;
  all["base"] = state.base;
  all["skipped"] = skipped;
  return all;
}

// Binds `state` and `restore` to a class whose objects have `alone`.
template <class Reader, class Class>
void bind_state(Class& bound) {
  using nb::literals::operator""_a;
  using Held = typename Class::Type;
  using Skipped = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>;
  bound.def(
      "state",
      [](Held& self) {
        return state_dict(self.alone([](Reader& reader) { return reader.state(); }));
      },
      nb::sig("def state(self) -> dict[str, typing.Any]"));
  bound.def(
      "restore",
      [](Held& self, std::uint32_t format, std::optional<std::uint64_t> fingerprint,
         std::uint64_t block_size, std::string order, std::uint64_t seed, std::uint64_t epoch,
         std::uint64_t position, std::uint64_t step, std::uint64_t base, const Skipped& skipped) {
        State then{.format = format,
                   .fingerprint = fingerprint,
                   .block_size = block_size,
                   .order = std::move(order),
                   .seed = seed,
                   .epoch = epoch,
                   .position = position,
                   .step = step,
                   .base = base};
        for (const auto& [of, first, last] : skipped) then.skipped.push_back({of, first, last});
        self.alone([&then](Reader& reader) { reader.restore(then); });
      },
      nb::kw_only(), "format"_a, "fingerprint"_a.none(), "block_size"_a, "order"_a, "seed"_a,
      "epoch"_a, "position"_a, "step"_a, "base"_a, "skipped"_a);
}

}  // namespace lowtide::python
