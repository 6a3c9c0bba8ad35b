// trimmer.h - the thread of the shim: looks, counts, lets go.
//
// Cheap looks (statm) at a pace of its own; an exact count of the covered ranges after each trim,
// when pages went without us, and ten times a second while that is cheap. All its descriptors are
// in a table of its own. It never allocates and never waits for the program, except for the lock.
#pragma once

#include "ceiling/shim/churn.h"
#include "ceiling/shim/pace.h"
#include "ceiling/shim/shim.h"
#include "os/bare_maps.h"

namespace lowtide::ceiling {

class Trimmer {
 public:
  explicit Trimmer(Shim& whose) : shim_(whose), pace_(whose.settings().limit_bytes) {}

  // False where the kernel gives no way to look.
  [[nodiscard]] bool open();
  void close() { maps_.close(); }
  // One look, and a trim where it is due; the time to sleep.
  [[nodiscard]] std::uint64_t look();

 private:
  [[nodiscard]] std::uint64_t count(Shim::Held& held);
  [[nodiscard]] std::uint64_t others_bytes();  // of the other processes, where the tree counts
  void publish(std::uint64_t bytes);           // tells the other processes
  [[nodiscard]] bool holds_its_share();
  [[nodiscard]] bool ours(Entry& entry, const bare::Area& area);
  void trim();
  void rest_after(std::uint64_t before, std::uint64_t after);
  void trim_entry(Shim::Held& held, Entry entry);
  void release(Shim::Held& held, const Entry& entry, const bare::Area& area, bare::Range part);
  [[nodiscard]] bool release_clean(bare::Range part, bare::OwnMaps::Visit how, bool& refused);
  void page_out_part(bare::Range part);
  [[nodiscard]] std::uint64_t resident_now(bare::Range part);  // all of it where nobody can tell
  void drop_cache(const Entry& entry, const bare::Area& area, bare::Range part);

  Shim& shim_;
  Pace pace_;
  Churn churn_;
  bare::OwnMaps maps_;
  std::uint64_t other_bytes_ = 0;  // shared pages that are none of ours, at the last count
  std::uint64_t last_shared_ = 0;  // at the last look
  std::uint64_t next_count_ns_ = 0;
  std::uint64_t resident_bytes_ = 0;
  std::uint64_t mapped_bytes_ = 0;  // the size of all maps, at the last count
  std::uint64_t kept_bytes_ = 0;    // of the last trim: what the kernel did not let go
  std::uint64_t rest_ns_ = 0;       // extra sleep after trims that let go of nothing
  unsigned futile_ = 0;             // trims in a row that let go of nothing
  char path_[bare::kPathBytes];
};

}  // namespace lowtide::ceiling
