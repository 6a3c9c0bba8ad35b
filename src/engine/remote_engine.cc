#include "engine/remote_engine.h"

#include <algorithm>
#include <new>
#include <span>
#include <utility>

#include "engine/split_sets.h"
#include "os/files.h"

namespace lowtide {
namespace {

class RemoteEngine final : public Engine {
 public:
  RemoteEngine(std::shared_ptr<Files> files, std::unique_ptr<Lane> objects,
               std::unique_ptr<Engine> local, Claim claim)
      : files_(std::move(files)),
        claim_(std::move(claim)),
        objects_(std::move(objects)),
        local_(std::move(local)) {}

  void submit(ReadSet& set) noexcept override {
    const auto is_remote = [this](const Read& read) {
      return files_->shards()->is_remote(read.from.shard);
    };
    const std::size_t far =
        local_ == nullptr ? set.reads.size()
                          : static_cast<std::size_t>(std::ranges::count_if(set.reads, is_remote));
    if (far == set.reads.size()) {
      objects_->submit(set);
    } else if (far == 0) {
      local_->submit(set);
    } else {
      try {
        // The servers first: they work while local files are read.
        splits_.submit(
            set, [&](const Read& read) { return !is_remote(read); },
            [&](ReadSet& near) { local_->submit(near); },
            [&](ReadSet& rest) { objects_->submit(rest); });
      } catch (const std::bad_alloc& error) {
        set.done(not_started(error));
      }
    }
  }

  void expect_all() noexcept override {
    if (local_ != nullptr) local_->expect_all();
  }
  // A request costs far more than a local read, so look-ahead is judged by the objects.
  Prospect prospect() noexcept override { return {.gap_bytes = objects_->gap_bytes()}; }
  Traffic traffic() const noexcept override {
    Traffic all = objects_->traffic();
    if (local_ == nullptr) return all;
    const Traffic near = local_->traffic();
    return {.bytes_read = all.bytes_read + near.bytes_read,
            .reads = all.reads + near.reads,
            .merged = all.merged + near.merged};
  }
  std::string name() const override {
    return local_ == nullptr ? "http" : "http+" + local_->name();
  }
  std::string reason() const override {
    return local_ == nullptr ? "the data is on a server" : "some of the data is on a server";
  }

 private:
  const std::shared_ptr<Files> files_;
  const Claim claim_;
  SplitSets splits_;
  const std::unique_ptr<Lane> objects_;
  const std::unique_ptr<Engine> local_;
};

}  // namespace

std::unique_ptr<Engine> make_remote_engine(std::shared_ptr<Files> files,
                                           std::unique_ptr<Lane> objects,
                                           std::unique_ptr<Engine> local, Claim claim) {
  return std::make_unique<RemoteEngine>(std::move(files), std::move(objects), std::move(local),
                                        std::move(claim));
}

}  // namespace lowtide
