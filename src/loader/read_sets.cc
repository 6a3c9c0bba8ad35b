#include "loader/read_sets.h"

#include <algorithm>

namespace lowtide {

void ReadSets::keep(std::size_t sets) {
  while (sets_.size() < sets) sets_.push_back(std::make_unique<LoaderSet>(place_));
}

LoaderSet* ReadSets::free() {
  if (flying_ == sets_.size()) return nullptr;
  return std::ranges::find_if(sets_, [](const auto& set) { return !set->flying; })->get();
}

void ReadSets::submit(LoaderSet& set) {
  set.reads = set.storage;
  set.flying = true;
  ++flying_;
  engine_.submit(set);
}

void ReadSets::landed(LoaderSet& set) {
  set.flying = false;
  --flying_;
}

void ReadSets::cancel_all() {
  for (const auto& set : sets_) {
    if (set->flying) set->cancel();
  }
}

}  // namespace lowtide
