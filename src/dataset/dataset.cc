#include "dataset/dataset.h"

#include <algorithm>

#include "core/checked.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kColumnAlignBytes = 64;  // for any element, and for vector instructions

}  // namespace

void Dataset::lengths(std::uint32_t /*table*/, std::span<const std::uint64_t> /*samples*/,
                      std::span<std::uint64_t> out) const {
  std::ranges::fill(out, 1);
}

std::uint64_t Dataset::batch_bytes(std::uint64_t samples) const {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < fields(); ++i) {
    end = round_up(end, kColumnAlignBytes) + samples * field(i).unit_bytes;
  }
  return end;
}

void Dataset::describe(std::uint64_t samples, std::span<const std::byte> /*batch*/,
                       std::vector<Column>* columns) const {
  read_columns(samples, {}, columns);
}

void Dataset::read_columns(std::uint64_t samples, std::span<const std::uint64_t> offsets,
                           std::vector<Column>* columns) const {
  columns->clear();
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < fields(); ++i) {
    const SampleField field = this->field(i);
    const std::uint64_t units =
        field.table ? offsets[*field.table * (samples + 1) + samples] : samples;
    const std::uint64_t start = round_up(end, kColumnAlignBytes);
    columns->push_back({start, units * field.unit_bytes, field.kind, field.item_bytes});
    end = start + units * field.unit_bytes;
  }
}

std::size_t source_of(std::span<const std::uint64_t> first, std::uint64_t sample) {
  return static_cast<std::size_t>(std::ranges::upper_bound(first, sample) - first.begin() - 1);
}

void number_in_sources(std::span<const std::uint64_t> first, std::span<std::uint64_t> samples,
                       std::vector<std::uint64_t>* sources) {
  sources->clear();
  if (first.size() == 2) return;
  for (std::uint64_t& sample : samples) {
    const std::size_t source = source_of(first, sample);
    sources->push_back(source);
    sample -= first[source];
  }
}

}  // namespace lowtide
