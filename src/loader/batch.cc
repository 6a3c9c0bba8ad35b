#include "lowtide/batch.h"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "loader/pool.h"

namespace lowtide {

Batch::Batch(const Batch& other) noexcept : buffer_(other.buffer_) {
  if (buffer_ != nullptr) buffer_->leases_.fetch_add(1, std::memory_order_relaxed);
}

void Batch::release() noexcept {
  // Writes through other copies happen before the buffer is reused.
  if (buffer_->leases_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  std::unique_ptr<Buffer> buffer(std::exchange(buffer_, nullptr));
  const std::shared_ptr<Pool> pool = std::move(buffer->pool_);
  pool->give_back(std::move(buffer));
}

std::uint64_t Batch::rows() const noexcept {
  return buffer_ == nullptr ? 0 : buffer_->rows;
}
std::size_t Batch::columns() const noexcept {
  return buffer_ == nullptr ? 0 : buffer_->columns.size();
}

std::span<std::byte> Batch::column(std::size_t number) const {
  if (number >= columns()) {
    throw std::out_of_range("column " + std::to_string(number) + " does not exist: the batch has " +
                            std::to_string(columns()) + (columns() == 1 ? " column" : " columns"));
  }
  const Column& column = buffer_->columns[number];
  return {buffer_->memory.data() + column.offset_bytes, column.size_bytes};
}

std::span<std::byte> Batch::checked(std::size_t number, char kind, std::size_t size_bytes,
                                    std::size_t align_bytes) const {
  const std::span<std::byte> bytes = column(number);
  const Column& column = buffer_->columns[number];
  const bool fits = kind == 'V'
                        ? bytes.size() % size_bytes == 0 && size_bytes % column.item_bytes == 0
                        : kind == column.kind && size_bytes == column.item_bytes;
  if (!fits && !(kind == 'V' && size_bytes == 1)) {
    throw std::invalid_argument("column " + std::to_string(number) + " has elements of kind '" +
                                column.kind + "' with " + std::to_string(column.item_bytes) +
                                " bytes, not '" + kind + "' with " + std::to_string(size_bytes) +
                                " bytes");
  }
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % align_bytes != 0) {
    throw std::invalid_argument("column " + std::to_string(number) +
                                " is not aligned for a type that needs " +
                                std::to_string(align_bytes) + " bytes");
  }
  return bytes;
}

std::span<const std::uint64_t> Batch::index() const noexcept {
  if (buffer_ == nullptr) return {};
  return buffer_->samples;
}
std::span<const std::uint64_t> Batch::sources() const noexcept {
  if (buffer_ == nullptr) return {};
  return buffer_->sources;
}
std::span<const std::uint64_t> Batch::offsets(std::size_t table) const noexcept {
  if (buffer_ == nullptr || (table + 1) * (rows() + 1) > buffer_->offsets.size()) return {};
  return std::span(buffer_->offsets).subspan(table * (rows() + 1), rows() + 1);
}
std::uint64_t Batch::step() const noexcept {
  return buffer_ == nullptr ? 0 : buffer_->step;
}
std::uint64_t Batch::epoch() const noexcept {
  return buffer_ == nullptr ? 0 : buffer_->epoch;
}

}  // namespace lowtide
