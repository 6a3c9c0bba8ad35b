#include <utility>

#include "face/tokens_impl.h"

namespace lowtide {

TokenBatch::TokenBatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TokenBatch::TokenBatch(TokenBatch&&) noexcept = default;
TokenBatch& TokenBatch::operator=(TokenBatch&&) noexcept = default;
TokenBatch::~TokenBatch() = default;

std::uint64_t TokenBatch::rows() const {
  return impl_->rows;
}
std::uint64_t TokenBatch::block_size() const {
  return impl_->windows->options().block_size;
}
std::byte* TokenBatch::x() const {
  return impl_->lease->memory.data();
}
std::byte* TokenBatch::y() const {
  return x() + impl_->shape.y_bytes;
}
std::span<const std::uint64_t> TokenBatch::samples() const {
  return impl_->lease->samples;
}
std::uint64_t TokenBatch::step() const {
  return impl_->lease.step;
}
std::uint64_t TokenBatch::epoch() const {
  return impl_->lease.epoch;
}

std::int32_t* TokenBatch::positions() const {
  if (!impl_->windows->options().separate) return nullptr;
  return reinterpret_cast<std::int32_t*>(x() + impl_->shape.positions_bytes);
}

std::span<std::int32_t> TokenBatch::cu_seqlens() const {
  if (!impl_->windows->options().separate) return {};
  const auto* count = reinterpret_cast<const std::uint64_t*>(x() + impl_->shape.cu_count_bytes);
  return {reinterpret_cast<std::int32_t*>(x() + impl_->shape.cu_seqlens_bytes), *count};
}

}  // namespace lowtide
