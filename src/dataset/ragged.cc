#include "dataset/ragged.h"

#include <algorithm>
#include <utility>

namespace lowtide {
namespace {

SampleField unit_of(const Rows& rows) {
  return rows.field(0);
}
SampleField unit_of(const TokenStream& stream) {
  return {.unit_bytes = stream.item_bytes(),
          .kind = token_type_name(stream.type()).front(),
          .item_bytes = stream.item_bytes()};
}

}  // namespace

Ragged::Ragged(RaggedValues values, std::shared_ptr<const Offsets> offsets,
               std::uint32_t first_shard)
    : values_(std::move(values)), offsets_(std::move(offsets)), first_shard_(first_shard) {
  unit_ = std::visit([](const auto& held) { return unit_of(*held); }, values_);
  unit_.table = 0;
  longest_ = offsets_->longest();
  offsets_->offsets(size(), std::span(&end_, 1));
  most_reads_ = std::visit(
      [this](const auto& held) { return std::max<std::uint64_t>(1, held->most_reads(longest_)); },
      values_);
}

std::string Ragged::path(std::uint32_t shard) const {
  if (const auto* rows = std::get_if<std::shared_ptr<const Rows>>(&values_)) {
    return (*rows)->path(shard);
  }
  return std::get<1>(values_)->shards()->path(shard - first_shard_);
}

void Ragged::locate(std::size_t /*field*/, std::uint64_t /*part*/,
                    std::span<const std::uint64_t> samples, std::span<std::byte* const> targets,
                    std::vector<Read>& out) const {
  std::vector<std::uint64_t> starts(samples.size()), ends(samples.size());
  offsets_->bounds(samples, starts, ends);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (starts[i] >= ends[i]) continue;
    if (const auto* rows = std::get_if<std::shared_ptr<const Rows>>(&values_)) {
      (*rows)->locate_run(starts[i], ends[i] - starts[i], targets[i], out);
    } else {
      std::get<1>(values_)->locate(starts[i], ends[i] - starts[i], first_shard_, targets[i], out);
    }
  }
}

void Ragged::lengths(std::uint32_t /*table*/, std::span<const std::uint64_t> samples,
                     std::span<std::uint64_t> out) const {
  std::vector<std::uint64_t> starts(samples.size());
  offsets_->bounds(samples, starts, out);
  for (std::size_t i = 0; i < samples.size(); ++i) out[i] -= starts[i];
}

}  // namespace lowtide
