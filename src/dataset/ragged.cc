#include "dataset/ragged.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lowtide {
namespace {

constexpr std::uint64_t kTogether = 8192;  // documents whose lengths are looked at together

}  // namespace

Ragged::Ragged(std::shared_ptr<const TokenStream> stream,
               std::shared_ptr<const Documents> documents)
    : stream_(std::move(stream)), documents_(std::move(documents)) {
  std::vector<std::uint64_t> starts;
  for (std::uint64_t first = 0; first < size(); first += kTogether) {
    starts.resize(std::min(kTogether, size() - first) + 1);
    documents_->offsets(first, starts);
    for (std::size_t i = 1; i < starts.size(); ++i) {
      longest_ = std::max(longest_, starts[i] - starts[i - 1]);
    }
  }
}

void Ragged::locate(std::size_t /*field*/, std::uint64_t /*part*/,
                    std::span<const std::uint64_t> samples, std::span<std::byte* const> targets,
                    std::vector<Read>& out) const {
  std::array<std::uint64_t, 2> ends{};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    documents_->offsets(samples[i], ends);
    if (ends[0] < ends[1]) stream_->locate(ends[0], ends[1] - ends[0], 0, targets[i], out);
  }
}

void Ragged::lengths(std::uint32_t /*table*/, std::span<const std::uint64_t> samples,
                     std::span<std::uint64_t> out) const {
  std::array<std::uint64_t, 2> ends{};
  for (std::size_t i = 0; i < samples.size(); ++i) {
    documents_->offsets(samples[i], ends);
    out[i] = ends[1] - ends[0];
  }
}

SampleField Ragged::field(std::size_t /*number*/) const noexcept {
  return {.unit_bytes = stream_->item_bytes(),
          .kind = token_type_name(stream_->type()).front(),
          .item_bytes = stream_->item_bytes(),
          .table = 0};
}

}  // namespace lowtide
