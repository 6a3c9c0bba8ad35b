#include "dataset/ragged.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lowtide {
namespace {

constexpr std::uint64_t kTogether = 8192;  // samples whose lengths are looked at together

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
  std::vector<std::uint64_t> starts;
  for (std::uint64_t first = 0; first < size(); first += kTogether) {
    starts.resize(std::min(kTogether, size() - first) + 1);
    offsets_->offsets(first, starts);
    for (std::size_t i = 1; i < starts.size(); ++i) {
      longest_ = std::max(longest_, starts[i] - starts[i - 1]);
    }
    end_ = starts.back();
  }
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
  std::array<std::uint64_t, 2> ends{};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    offsets_->offsets(samples[i], ends);
    if (ends[0] >= ends[1]) continue;
    if (const auto* rows = std::get_if<std::shared_ptr<const Rows>>(&values_)) {
      (*rows)->locate_run(ends[0], ends[1] - ends[0], targets[i], out);
    } else {
      std::get<1>(values_)->locate(ends[0], ends[1] - ends[0], first_shard_, targets[i], out);
    }
  }
}

void Ragged::lengths(std::uint32_t /*table*/, std::span<const std::uint64_t> samples,
                     std::span<std::uint64_t> out) const {
  std::array<std::uint64_t, 2> ends{};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    offsets_->offsets(samples[i], ends);
    out[i] = ends[1] - ends[0];
  }
}

}  // namespace lowtide
