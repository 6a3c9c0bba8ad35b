// read_sets.h - the sets of reads that a loader has in flight. A fixed number of them is used again
// and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine.h"

namespace lowtide {

class LoaderSet;

// Receives the sets that have landed. Any thread.
class LandingPlace {
 public:
  virtual void landed(LoaderSet& set) noexcept = 0;

 protected:
  ~LandingPlace() = default;
};

// One set of reads. While it is in flight it belongs to the engine, then to the landing place.
class LoaderSet final : public ReadSet {
 public:
  explicit LoaderSet(LandingPlace& place) : place_(place) {}

  void done(const Outcome& result) noexcept override {
    outcome = result;
    place_.landed(*this);
  }

  std::vector<Read> storage;         // of `reads`
  std::uint64_t first_turn = 0;      // of the group that it is for, if it is for one
  std::vector<std::uint32_t> slots;  // else the flight of each sample
  Outcome outcome;                   // once it has landed
  LoaderSet* next_landed = nullptr;  // for the landing place
  bool flying = false;

 private:
  LandingPlace& place_;
};

// Used by one thread.
class ReadSets {
 public:
  ReadSets(Engine& engine, LandingPlace& place) : engine_(engine), place_(place) {}

  // Makes sure that there are at least this many sets.
  void keep(std::size_t sets);
  // Requires that none is in flight. Frees all of them.
  void clear() { sets_.clear(); }

  [[nodiscard]] LoaderSet* free();  // nullptr: all are in flight
  [[nodiscard]] std::size_t flying() const { return flying_; }
  // Requires reads in set.storage.
  void submit(LoaderSet& set);
  void landed(LoaderSet& set);
  void cancel_all();

 private:
  Engine& engine_;
  LandingPlace& place_;
  std::vector<std::unique_ptr<LoaderSet>> sets_;
  std::size_t flying_ = 0;
};

}  // namespace lowtide
