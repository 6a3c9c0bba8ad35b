// thinned.h - the readings of a run of any length, at most so many.
//
// Two readings stand at least a 4000th of the run so far apart, and where there are 4000, every two
// become one: a run of a week is kept in some 2000 to 4000 readings. Of those that become one, the
// one with the most resident memory stays, so that peaks stay, with the files and the PSS that the
// others asked for.
#pragma once

#include <optional>
#include <vector>

#include "meter/reading.h"

namespace lowtide {

class Thinned {
 public:
  static constexpr std::size_t kMost = 4000;

  // Takes the next one, later than all before. Gives back what is now kept for sure, to be written
  // down: this one, one that stands for it and those before it, or none yet.
  [[nodiscard]] std::optional<Reading> add(Reading reading);
  // What add() held back, at the end.
  [[nodiscard]] std::optional<Reading> flush();

  // All, with the one that is held back.
  [[nodiscard]] std::vector<Reading> readings() const;

 private:
  void keep(const Reading& reading);

  std::vector<Reading> kept_;
  std::optional<Reading> held_;
};

}  // namespace lowtide
