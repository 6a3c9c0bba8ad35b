#include "dataset/columns.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/token_type.h"
#include "dataset/sparse.h"

namespace lowtide {
namespace {

// Requires that the elements are integers.
TokenType integer_type(const SampleField& field) {
  DType dtype;
  dtype.kind = field.kind;
  dtype.itemsize_bytes = field.item_bytes;
  return token_type(dtype).value();
}

void copy_held(const std::byte* held, std::uint64_t sample_bytes,
               std::span<const std::uint64_t> samples, std::span<std::byte* const> targets) {
  const auto copy = [&](auto size_bytes) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      std::memcpy(targets[i], held + samples[i] * size_bytes, size_bytes);
    }
  };
  // Labels mostly; a copy of a known size is one instruction.
  if (sample_bytes == 8) return copy(std::integral_constant<std::uint64_t, 8>());
  if (sample_bytes == 4) return copy(std::integral_constant<std::uint64_t, 4>());
  copy(sample_bytes);
}

}  // namespace

Columns::Columns(std::vector<Source> sources) : sources_(std::move(sources)) {
  const Source& first = sources_.front();
  for (std::size_t column = 0; column < first.size(); ++column) {
    SampleField field = first[column].data->field(0);
    field.table = first[column].table;
    if (field.table == columns_of_tables_.size()) columns_of_tables_.push_back(column);
    fields_.push_back(field);
  }
  for (const Source& source : sources_) {
    first_.push_back(first_.back() + source.front().data->size());
    std::uint64_t sample_bytes = 0, reads = 0;
    for (const Part& part : source) {
      sample_bytes += part.data->sample_bytes();
      if (part.held != nullptr) continue;
      parts_ = std::max(parts_, part.data->parts());
      reads += part.data->reads_per_part();
      data_bytes_ += part.data->data_bytes();
    }
    sample_bytes_ = std::max(sample_bytes_, sample_bytes);
    reads_per_part_ = std::max({reads_per_part_, reads, std::uint64_t{1}});
  }
}

// Calls `each` for every stretch of samples of one source, with that source, the place of the
// stretch in `samples` and its samples in the numbering of the source.
template <class Each>
void Columns::by_source(std::span<const std::uint64_t> samples, Each each) const {
  if (sources_.size() == 1) return each(sources_.front(), 0, samples);
  std::vector<std::uint64_t> inside;
  for (std::size_t at = 0; at < samples.size(); at += inside.size()) {
    const std::size_t source = source_of(first_, samples[at]);
    inside.clear();
    for (std::size_t i = at; i < samples.size(); ++i) {
      if (samples[i] < first_[source] || samples[i] >= first_[source + 1]) break;
      inside.push_back(samples[i] - first_[source]);
    }
    each(sources_[source], at, std::span<const std::uint64_t>(inside));
  }
}

std::string Columns::path(std::uint32_t shard) const {
  const Part* found = nullptr;
  for (const Source& source : sources_) {
    for (const Part& part : source) {
      if (part.first_shard <= shard) found = &part;
    }
  }
  return found->data->path(shard);
}

void Columns::locate(std::size_t field, std::uint64_t part, std::span<const std::uint64_t> samples,
                     std::span<std::byte* const> targets, std::vector<Read>& out) const {
  by_source(samples,
            [&](const Source& source, std::size_t at, std::span<const std::uint64_t> inside) {
              const Part& column = source[field];
              if (part >= (column.held != nullptr ? 1 : column.data->parts())) return;
              const auto into = targets.subspan(at, inside.size());
              if (column.held != nullptr) {
                copy_held(column.held, fields_[field].unit_bytes, inside, into);
              } else {
                column.data->locate(0, part, inside, into, out);
              }
            });
}

void Columns::lengths(std::uint32_t table, std::span<const std::uint64_t> samples,
                      std::span<std::uint64_t> out) const {
  by_source(
      samples, [&](const Source& source, std::size_t at, std::span<const std::uint64_t> inside) {
        source[columns_of_tables_[table]].data->lengths(0, inside, out.subspan(at, inside.size()));
      });
}

// The columns of all sources have the same limit.
void Columns::check(const ReadSamples& read) const {
  for (std::size_t column = 0; column < fields_.size(); ++column) {
    const std::uint64_t below = sources_.front()[column].below;
    if (below == 0) continue;
    const SampleField& field = fields_[column];
    const TokenType type = integer_type(field);
    const std::byte* const all = read.bytes + read.columns[column].offset_bytes;
    const std::size_t count = read.columns[column].size_bytes / field.item_bytes;
    const std::size_t wrong = first_not_below(type, all, count, below);
    if (wrong == count) continue;
    const std::size_t rows = read.samples.size();
    const auto starts = read.offsets.subspan(*field.table * (rows + 1), rows + 1);
    const auto row = std::ranges::upper_bound(starts, wrong) - starts.begin() - 1;
    const std::uint64_t sample = read.samples[static_cast<std::size_t>(row)];
    const std::size_t source = source_of(first_, sample);
    const Part& part = sources_[source][column];
    throw_wrong_index(part.data->path(part.first_shard), sample - first_[source], type, all, wrong,
                      below);
  }
}

}  // namespace lowtide
