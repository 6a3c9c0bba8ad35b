// split_sets.h - sets of reads of which one reader serves some and another reader the rest. The
// whole set is done when both halves are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/mutex.h"
#include "engine/engine.h"

namespace lowtide {

// Keeps a few halves for reuse. It must outlive every set that was split. Any thread.
class SplitSets {
 public:
  SplitSets();
  ~SplitSets();
  SplitSets(const SplitSets&) = delete;
  SplitSets& operator=(const SplitSets&) = delete;

  // Gives the reads for which `chosen(read)` is true to `to_chosen` and the others to `to_rest`,
  // both as a ReadSet&. The rest goes first. Throws std::bad_alloc, and then neither was called.
  template <typename Chosen, typename ToChosen, typename ToRest>
  void submit(ReadSet& set, const Chosen& chosen, const ToChosen& to_chosen,
              const ToRest& to_rest) {
    std::unique_ptr<Split> split = take(set);
    for (std::size_t i = 0; i < set.reads.size(); ++i) {
      (chosen(set.reads[i]) ? split->chosen : split->rest).add(set.reads[i], i);
    }
    // From here on the split belongs to the half that ends last. A half that is empty never ends,
    // so with only one half the split may be reused before its reader returns.
    Split* const flying = start(std::move(split));
    const bool has_chosen = !flying->chosen.reads.empty();
    if (!flying->rest.reads.empty()) to_rest(flying->rest);
    if (has_chosen) to_chosen(flying->chosen);
  }

 private:
  struct Split;
  struct Half final : ReadSet {
    Split* split = nullptr;
    std::vector<Read> copies;
    std::vector<std::uint32_t> where;  // index in the whole set

    void done(const Outcome& outcome) noexcept override;
    [[nodiscard]] bool cancelled() const noexcept override;
    void add(const Read& read, std::size_t index) {
      copies.push_back(read);
      where.push_back(static_cast<std::uint32_t>(index));
    }
  };
  struct Split {
    SplitSets* owner = nullptr;
    ReadSet* whole = nullptr;
    Half chosen, rest;
    Mutex mutex;
    int left LOWTIDE_GUARDED_BY(mutex) = 0;  // halves that are not done
    Outcome result LOWTIDE_GUARDED_BY(mutex);
  };

  [[nodiscard]] std::unique_ptr<Split> take(ReadSet& set) LOWTIDE_EXCLUDES(mutex_);
  [[nodiscard]] static Split* start(std::unique_ptr<Split> split);
  void recycle(Split* split) noexcept LOWTIDE_EXCLUDES(mutex_);

  Mutex mutex_;
  std::vector<std::unique_ptr<Split>> spare_ LOWTIDE_GUARDED_BY(mutex_);
};

}  // namespace lowtide
