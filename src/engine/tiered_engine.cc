// Objects with copies on a local disk: reads of blocks that are there go to an engine for local
// files, the others bring their blocks, which are then kept.
#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "engine/block_fetcher.h"
#include "engine/remote_engine.h"
#include "engine/split_sets.h"
#include "os/files.h"

namespace lowtide {
namespace {

class TieredEngine final : public Engine {
 public:
  TieredEngine(Tier tier, std::unique_ptr<Engine> source, std::unique_ptr<Engine> copies,
               Claim claim, std::size_t buffers)
      : tier_(std::move(tier)),
        source_(std::move(source)),
        copies_(std::move(copies)),
        claim_(std::move(claim)),
        fetcher_(*source_, tier_.objects, *tier_.folder, buffers) {
    for (const auto& object : tier_.objects) {
      if (object != nullptr) blocks_ += object->blocks();
    }
  }

  void submit(ReadSet& set) noexcept override {
    split(
        set, splits_, [this](const Read& read) { return is_ready(read); },
        [this](ReadSet& here) { read_copies(here); }, [this](ReadSet& rest) { bring(rest); });
  }

  // On the calling thread where the copies can.
  Outcome read(std::span<const Read> reads) noexcept override {
    if (std::ranges::all_of(reads, [this](const Read& read) { return is_ready(read); })) {
      const Outcome outcome = copies_->read(reads);
      return outcome.ok() || outcome.cancelled ? outcome : source_->read(reads);
    }
    return Engine::read(reads);
  }

  void expect_all() noexcept override { source_->expect_all(); }
  Prospect prospect() noexcept override {
    if (whole()) return copies_->prospect();
    Prospect prospect = source_->prospect();
    // A block is fetched whole, so neighbours in it cost nothing.
    if (fetcher_.filling())
      prospect.gap_bytes = std::max<std::uint32_t>(prospect.gap_bytes, KeptObject::kBlockBytes);
    return prospect;
  }
  Traffic traffic() const noexcept override {
    const Traffic far = source_->traffic(), near = copies_->traffic();
    return {.bytes_read = far.bytes_read + near.bytes_read,
            .reads = far.reads + near.reads,
            .merged = far.merged + near.merged};
  }
  std::string name() const override {
    return (whole() ? "cache+" : source_->name() + "+cache+") + copies_->name();
  }
  std::string reason() const override {
    const std::uint64_t ready = ready_blocks();
    std::string text = std::to_string(ready) + " of " + std::to_string(blocks_) + " MiB are in " +
                       tier_.folder->path();
    if (!fetcher_.filling()) text += "; no more are kept: " + fetcher_.why_not();
    return text;
  }

 private:
  // A set that the copies serve. If they fail, the server has the same bytes.
  class FromCopies final : public ReadSet {
   public:
    FromCopies(Engine& source, ReadSet& set) : source_(source), set_(set) { reads = set.reads; }

    void done(const Outcome& outcome) noexcept override {
      const std::unique_ptr<FromCopies> self(this);
      if (outcome.ok() || outcome.cancelled) {
        set_.done(outcome);
      } else {
        source_.submit(set_);
      }
    }
    [[nodiscard]] bool cancelled() const noexcept override { return set_.cancelled(); }

   private:
    Engine& source_;
    ReadSet& set_;
  };

  // Gives the whole set to one side if it can.
  template <typename Chosen, typename ToChosen, typename ToRest>
  void split(ReadSet& set, SplitSets& splits, const Chosen& chosen, const ToChosen& to_chosen,
             const ToRest& to_rest) noexcept {
    const auto count = static_cast<std::size_t>(std::ranges::count_if(set.reads, chosen));
    if (count == set.reads.size()) {
      to_chosen(set);
    } else if (count == 0) {
      to_rest(set);
    } else {
      try {
        splits.submit(set, chosen, to_chosen, to_rest);
      } catch (const std::bad_alloc&) {
        source_->submit(set);  // correct for every read, if not the fastest
      }
    }
  }

  void read_copies(ReadSet& set) noexcept {
    auto* const from_copies = new (std::nothrow) FromCopies(*source_, set);
    if (from_copies != nullptr) {
      copies_->submit(*from_copies);
    } else {
      source_->submit(set);
    }
  }

  // Reads of which no block is here and none will be kept ask for their own bytes only.
  void bring(ReadSet& set) noexcept {
    split(
        set, bring_splits_, [this](const Read& read) { return is_blockwise(read); },
        [this](ReadSet& blockwise) { fetcher_.submit(blockwise); },
        [this](ReadSet& rest) { source_->submit(rest); });
  }

  [[nodiscard]] const KeptObject* object_of(const Read& read) const noexcept {
    return tier_.objects[read.from.shard].get();
  }
  [[nodiscard]] bool is_ready(const Read& read) const noexcept {
    const KeptObject* const object = object_of(read);
    return object != nullptr && object->ready(read.from.offset_bytes, read.from.size_bytes);
  }
  [[nodiscard]] bool is_blockwise(const Read& read) const noexcept {
    const KeptObject* const object = object_of(read);
    return object != nullptr && !object->lost() && object->holds(read.from) &&
           (fetcher_.filling() || object->stored(read.from.offset_bytes, read.from.size_bytes));
  }
  [[nodiscard]] std::uint64_t ready_blocks() const noexcept {
    std::uint64_t ready = 0;
    for (const auto& object : tier_.objects) ready += object ? object->ready_blocks() : 0;
    return ready;
  }
  [[nodiscard]] bool whole() const noexcept {
    return std::ranges::all_of(tier_.objects, [](const auto& object) {
      return object != nullptr && object->ready_blocks() == object->blocks();
    });
  }

  Tier tier_;
  const std::unique_ptr<Engine> source_, copies_;
  const Claim claim_;
  std::uint64_t blocks_ = 0;
  SplitSets splits_, bring_splits_;
  BlockFetcher fetcher_;  // the last member: its thread ends first
};

}  // namespace

Tier open_tier(const Shards& shards, const std::string& folder, std::uint64_t limit_bytes) {
  Tier tier;
  tier.folder = std::make_unique<TierFolder>(folder, limit_bytes);
  std::vector<std::string> keys;  // empty for a shard that is not kept
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const Shard shard = shards[i];
    keys.push_back(shard.remote != nullptr ? object_key(shard) : "");
  }
  tier.folder->use(keys);  // first, so that nobody removes what is opened here
  std::vector<Shard> copies;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    Shard copy = shards[i];
    tier.objects.push_back(nullptr);
    if (!keys[i].empty()) {
      tier.objects.back() = std::make_unique<KeptObject>(folder, keys[i], copy.size_bytes);
      copy = {.path = tier.objects.back()->data_path(),
              .size_bytes = copy.size_bytes,
              .version = kAnyVersion};
    }
    copies.push_back(std::move(copy));
  }
  tier.copies = std::make_shared<Files>(std::make_shared<const Shards>(copies));
  return tier;
}

std::unique_ptr<Engine> make_tiered_engine(Tier tier, std::unique_ptr<Engine> source,
                                           std::unique_ptr<Engine> copies, Claim claim,
                                           std::size_t buffers) {
  return std::make_unique<TieredEngine>(std::move(tier), std::move(source), std::move(copies),
                                        std::move(claim), buffers);
}

}  // namespace lowtide
