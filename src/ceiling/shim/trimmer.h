// trimmer.h - the shim's thread: it looks, counts and releases pages.
//
// It looks at statm, which is cheap, at its own pace. It counts the covered ranges exactly after
// each trim, when pages disappeared without a trim, and ten times per second as long as that is
// cheap. It has a descriptor table of its own. It never allocates, and waits for the program only
// to take the lock.
#pragma once

#include "ceiling/pace.h"
#include "ceiling/shim/churn.h"
#include "ceiling/shim/mark.h"
#include "ceiling/shim/shim.h"
#include "system/bare_maps.h"

namespace lowtide::ceiling {

class Trimmer {
 public:
  explicit Trimmer(Shim& whose) : shim_(whose), mark_(whose.settings().limit_bytes) {}

  // False if the kernel offers no way to look.
  [[nodiscard]] bool open();
  void close() { maps_.close(); }
  // Looks once, and trims if it is due; returns the time to sleep.
  [[nodiscard]] std::uint64_t look();

 private:
  [[nodiscard]] std::uint64_t count(Shim::Held& held);
  [[nodiscard]] std::uint64_t
  others_bytes();                     // of the other processes, if the limit is for the tree
  void publish(std::uint64_t bytes);  // to the other processes
  [[nodiscard]] bool holds_its_share();
  [[nodiscard]] bool ours(Entry& entry, const bare::Area& area);
  void trim();
  void rest_after(std::uint64_t before, std::uint64_t after);
  void trim_entry(Shim::Held& held, Entry entry);
  void release(Shim::Held& held, const Entry& entry, const bare::Area& area, bare::Range range);
  [[nodiscard]] bool release_clean(bare::Range range, bare::OwnMaps::Visit how, bool& refused);
  void page_out_range(bare::Range range);
  [[nodiscard]] std::uint64_t resident_now(bare::Range range);  // all of it if it is unknown
  void drop_cache(const Entry& entry, const bare::Area& area, bare::Range range);

  Shim& shim_;
  Mark mark_;
  // A reader at 1 GB/s is noticed before it is 5 % above the limit.
  Pace pace_{{.growing = 4'000'000'000, .starting = 1'000'000'000}};
  Churn churn_;
  bare::OwnMaps maps_;
  std::uint64_t other_bytes_ = 0;  // shared pages outside our maps, as of the last count
  std::uint64_t last_shared_ = 0;  // as of the last look
  std::uint64_t next_count_ns_ = 0;
  std::uint64_t resident_bytes_ = 0;
  std::uint64_t mapped_bytes_ = 0;  // the size of all maps, as of the last count
  std::uint64_t kept_bytes_ = 0;    // what the kernel kept in the last trim
  std::uint64_t rest_ns_ = 0;       // extra sleep after futile trims
  unsigned futile_ = 0;             // consecutive trims that released nothing
  char path_[bare::kPathBytes];
};

}  // namespace lowtide::ceiling
