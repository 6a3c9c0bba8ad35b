#include "dataset/dense.h"

#include <cstring>
#include <limits>

#include "core/checked.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kDenseAlignBytes = 64;
constexpr std::uint64_t kTooManyBytes = std::numeric_limits<std::uint64_t>::max() / 2;

}  // namespace

std::uint64_t Dense::batch_bytes(std::uint64_t samples) const {
  std::uint64_t end = 0;
  for (const Output& output : outputs_) {
    std::uint64_t bytes = 0;
    if (!checked_mul(samples, row_bytes(output), &bytes) || bytes > kTooManyBytes / 2 - end) {
      return kTooManyBytes;
    }
    end = round_up(end, kDenseAlignBytes) + bytes;
  }
  return end;
}

void Dense::describe(std::uint64_t samples, std::span<const std::byte> /*batch*/,
                     std::vector<Column>* columns) const {
  columns->clear();
  std::uint64_t end = 0;
  for (const Output& output : outputs_) {
    const SampleField field = stored_->field(output.field);
    const std::uint64_t start = round_up(end, kDenseAlignBytes);
    end = start + samples * row_bytes(output);
    columns->push_back({start, end - start, output.rows ? 'f' : field.kind,
                        output.rows ? output.rows->item_bytes() : field.item_bytes});
  }
}

void Dense::deliver(const ReadSamples& read, std::byte* out) const {
  DenseRows::Scratch scratch;
  std::vector<Column> columns;
  const std::size_t count = read.samples.size();
  describe(count, {}, &columns);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    std::byte* const into = out + columns[i].offset_bytes;
    const std::byte* const values = read.bytes + read.columns[output.field].offset_bytes;
    if (!output.rows) {
      std::memcpy(into, values, columns[i].size_bytes);
      continue;
    }
    const SampleField stored = stored_->field(output.field);
    const std::byte* const indices = read.bytes + read.columns[output.field + 1].offset_bytes;
    const std::uint64_t index_bytes = stored_->field(output.field + 1).unit_bytes;
    const auto starts = read.offsets.subspan(*stored.table * (count + 1), count + 1);
    for (std::size_t row = 0; row < count; ++row) {
      const bool right = output.rows->fill(
          values + starts[row] * stored.unit_bytes, indices + starts[row] * index_bytes,
          starts[row + 1] - starts[row], into + row * output.rows->row_bytes(), scratch);
      if (!right) stored_->check(read);  // throws: it knows the file and the row
    }
  }
}

}  // namespace lowtide
