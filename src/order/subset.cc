#include "order/subset.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/hash.h"
#include "order/check_rows.h"

namespace lowtide {
namespace {

std::uint64_t distance_of(const RowRange& rows) noexcept {
  const auto step = static_cast<std::uint64_t>(rows.step);
  return rows.step > 0 ? step : 0 - step;
}

void check_count(std::uint64_t count) {
  if (count > 0) return;
  throw std::invalid_argument("rows: the selection is empty; select at least one row");
}

void check_range(const RowRange& rows, std::uint64_t limit) {
  assert(limit <= std::uint64_t{1} << 63);
  if (rows.step == 0) throw std::invalid_argument("rows: the step is 0; use 1 for every row");
  check_count(rows.count);
  if (rows.first >= limit) refuse_row("rows", 0, std::to_string(rows.first), limit);
  const std::uint64_t behind = rows.step > 0 ? limit - 1 - rows.first : rows.first;
  const std::uint64_t fitting = behind / distance_of(rows) + 1;
  if (rows.count <= fitting) return;
  const std::uint64_t wrong = rows[fitting];
  refuse_row(
      "rows", fitting,
      rows.step > 0 ? std::to_string(wrong) : std::to_string(static_cast<std::int64_t>(wrong)),
      limit);
}

std::uint64_t row_at(const auto& rows, std::uint64_t index) noexcept {
  return static_cast<std::uint64_t>(rows[static_cast<std::size_t>(index)]);
}

template <typename T>
bool evenly_spaced(std::span<const T> rows, std::uint64_t step) noexcept {
  return std::adjacent_find(rows.begin(), rows.end(), [step](T row, T next) {
           return static_cast<std::uint64_t>(next) - static_cast<std::uint64_t>(row) != step;
         }) == rows.end();
}

bool evenly_spaced(const RowRange& /*rows*/, std::uint64_t /*step*/) noexcept {
  return true;
}

template <typename T>
std::optional<std::uint64_t> find_row(std::span<const T> rows, std::uint64_t row) noexcept {
  const auto found = std::find_if(rows.begin(), rows.end(), [row](T candidate) {
    return static_cast<std::uint64_t>(candidate) == row;
  });
  if (found == rows.end()) return std::nullopt;
  return static_cast<std::uint64_t>(found - rows.begin());
}

std::optional<std::uint64_t> find_row(const RowRange& rows, std::uint64_t row) noexcept {
  const bool behind = rows.step > 0 ? row >= rows.first : row <= rows.first;
  const std::uint64_t apart = rows.step > 0 ? row - rows.first : rows.first - row;
  const std::uint64_t index = apart / distance_of(rows);
  if (!behind || index >= rows.count || rows[index] != row) return std::nullopt;
  return index;
}

class SubsetOrder final : public Order {
 public:
  SubsetOrder(Subset rows, std::unique_ptr<Order> inner)
      : rows_(std::move(rows)), inner_(std::move(inner)) {}

  [[nodiscard]] std::uint64_t size() const noexcept override { return inner_->size(); }

  void fill(std::uint64_t epoch, std::uint64_t first,
            std::span<std::uint64_t> out) const noexcept override {
    inner_->fill(epoch, first, out);
    rows_.map(out);
  }

  [[nodiscard]] std::optional<std::uint64_t> position_of(
      std::uint64_t epoch, std::uint64_t sample) const noexcept override {
    const auto index = rows_.index_of(sample);
    return index ? inner_->position_of(epoch, *index) : std::nullopt;
  }

  [[nodiscard]] bool sequential() const noexcept override {
    return rows_.contiguous() && inner_->sequential();
  }

 private:
  Subset rows_;
  std::unique_ptr<Order> inner_;
};

}  // namespace

Subset::Subset(const RowSelection& rows, std::uint64_t limit) {
  if (const auto* range = std::get_if<RowRange>(&rows)) {
    check_range(*range, limit);
    rows_ = *range;
    return;
  }
  const RowList& list = std::get<RowList>(rows);
  rows_ = std::visit([](const auto& borrowed) -> Rows { return borrowed; }, list);
  check_count(size());
  check_rows("rows", list, limit);
}

std::uint64_t Subset::size() const noexcept {
  return std::visit([](const auto& rows) { return std::uint64_t{rows.size()}; }, rows_);
}

std::uint64_t Subset::operator[](std::uint64_t index) const noexcept {
  assert(index < size());
  return std::visit([index](const auto& rows) { return row_at(rows, index); }, rows_);
}

void Subset::map(std::span<std::uint64_t> indices) const noexcept {
  std::visit(
      [indices](const auto& rows) {
        for (std::uint64_t& index : indices) index = row_at(rows, index);
      },
      rows_);
}

std::optional<std::uint64_t> Subset::index_of(std::uint64_t row) const noexcept {
  return std::visit([row](const auto& rows) { return find_row(rows, row); }, rows_);
}

std::uint64_t Subset::list_bytes() const noexcept {
  if (std::holds_alternative<RowRange>(rows_)) return 0;
  return std::visit([](const auto& rows) { return std::uint64_t{rows.size() * sizeof(rows[0])}; },
                    rows_);
}

bool Subset::contiguous() const noexcept {
  const auto* range = std::get_if<RowRange>(&rows_);
  return range != nullptr && range->step == 1;
}

// Hashes the count, and then either the first row and the step or, unless they are evenly spaced,
// every row. Most lists that are not evenly spaced show it in their first rows.
std::uint64_t Subset::hash(std::uint64_t seed) const noexcept {
  return std::visit(
      [seed](const auto& rows) {
        const std::uint64_t first = row_at(rows, 0);
        const std::uint64_t step = rows.size() > 1 ? row_at(rows, 1) - first : 0;
        std::uint64_t hash = hash_with(seed, std::uint64_t{rows.size()});
        if (evenly_spaced(rows, step)) return hash_with(hash_with(hash, first), step);
        for (std::uint64_t i = 0; i < rows.size(); ++i) hash = hash_with(hash, row_at(rows, i));
        return hash;
      },
      rows_);
}

std::unique_ptr<Order> make_subset(Subset rows, std::unique_ptr<Order> inner) {
  return std::make_unique<SubsetOrder>(std::move(rows), std::move(inner));
}

}  // namespace lowtide
