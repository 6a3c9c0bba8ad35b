// thinned.h - the readings of a run of any length, in bounded memory.
//
// Two readings are at least a 4000th of the elapsed time apart. When there are 4000, every two are
// merged into one, so a run of a week is kept in some 2000 to 4000 readings. Of merged readings the
// one with the most resident memory is kept, which preserves peaks, together with the files and
// the PSS that the others read.
#pragma once

#include <optional>
#include <vector>

#include "meter/reading.h"

namespace lowtide {

class Thinned {
 public:
  static constexpr std::size_t kMost = 4000;

  // Takes the next reading, later than all before. Returns the reading that is now final and can be
  // written to a file: this one, one that replaces it and those before it, or none yet.
  [[nodiscard]] std::optional<Reading> add(Reading reading);
  // At the end: the reading that add() held back.
  [[nodiscard]] std::optional<Reading> flush();

  // All readings, including the one held back.
  [[nodiscard]] std::vector<Reading> readings() const;

 private:
  void keep(const Reading& reading);

  std::vector<Reading> kept_;
  std::optional<Reading> held_;
};

}  // namespace lowtide
