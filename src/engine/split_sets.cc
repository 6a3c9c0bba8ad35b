#include "engine/split_sets.h"

#include <utility>

namespace lowtide {
namespace {

// A loader has at most a handful of sets in flight; each spare holds two lists of reads.
constexpr std::size_t kMostSpare = 8;

}  // namespace

SplitSets::SplitSets() {
  const MutexLock lock(mutex_);
  spare_.reserve(kMostSpare);  // recycle() must not allocate, because it must not throw
}

SplitSets::~SplitSets() = default;

std::unique_ptr<SplitSets::Split> SplitSets::take(ReadSet& set) {
  std::unique_ptr<Split> split;
  {
    const MutexLock lock(mutex_);
    if (!spare_.empty()) {
      split = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (!split) split = std::make_unique<Split>();
  split->owner = this;
  split->whole = &set;
  for (Half* const half : {&split->chosen, &split->rest}) {
    half->split = split.get();
    half->copies.clear();
    half->where.clear();
  }
  return split;
}

SplitSets::Split* SplitSets::start(std::unique_ptr<Split> split) {
  for (Half* const half : {&split->chosen, &split->rest}) half->reads = half->copies;
  const MutexLock lock(split->mutex);
  split->left = (split->chosen.reads.empty() ? 0 : 1) + (split->rest.reads.empty() ? 0 : 1);
  split->result = {};
  return split.release();
}

void SplitSets::Half::done(const Outcome& outcome) noexcept {
  Outcome total;
  {
    const MutexLock lock(split->mutex);
    if (!outcome.ok() && split->result.ok()) {
      split->result = outcome;
      split->result.read = where[outcome.read];
    }
    if (--split->left > 0) return;
    total = split->result;
  }
  // Recycles first: once the whole set is done, the engine may be destroyed.
  ReadSet* const set = split->whole;
  split->owner->recycle(split);
  set->done(total);
}

bool SplitSets::Half::cancelled() const noexcept {
  return split->whole->cancelled();
}

void SplitSets::recycle(Split* split) noexcept {
  std::unique_ptr<Split> owned(split);
  const MutexLock lock(mutex_);
  if (spare_.size() < kMostSpare) spare_.push_back(std::move(owned));
}

}  // namespace lowtide
