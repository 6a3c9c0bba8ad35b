#include "lowtide/tokens.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <variant>

#include "face/row_list.h"
#include "face/tokens_impl.h"
#include "order/random.h"

namespace lowtide {

TokenType parse_token_type(std::string_view name) {
  if (const std::optional<TokenType> type = token_type_named(name)) return *type;
  std::string known;
  for (const std::string_view one : token_types()) {
    known += (known.empty() ? "" : ", ") + std::string(one);
  }
  throw std::invalid_argument("dtype: tokens cannot be delivered as \"" + std::string(name) +
                              "\"; use one of " + known);
}

std::vector<std::string_view> token_types() {
  std::vector<std::string_view> names;
  for (const TokenTypeRow& row : kTokenTypeTable) names.push_back(row.name);
  return names;
}

void check_block(std::uint64_t block_size, std::uint64_t tokens) {
  if (block_size == 0) throw std::invalid_argument("block_size must be at least 1, not 0");
  if (block_size >= tokens) {
    throw std::invalid_argument("block_size: a window of " + std::to_string(block_size) +
                                " + 1 tokens does not fit into a stream of " +
                                std::to_string(tokens) + " tokens");
  }
}

Tokens::Tokens(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

std::uint64_t Tokens::size() const {
  return impl_->stream->size();
}
const DType& Tokens::dtype() const {
  return impl_->stream->dtype();
}
const std::string& Tokens::format() const {
  return impl_->stream->format();
}
std::vector<std::string> Tokens::paths() const {
  return impl_->stream->shards()->paths();
}
std::uint64_t Tokens::memory_bytes() const {
  return impl_->holder->options.memory_bytes;
}
std::optional<std::uint64_t> Tokens::eot() const {
  return impl_->eot;
}

void Tokens::read(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const {
  const TokenStream& stream = *impl_->stream;
  if (first > stream.size() || count > stream.size() - first) {
    throw std::out_of_range("tokens " + std::to_string(first) + " to " +
                            std::to_string(first + count) + " are outside the stream of " +
                            std::to_string(stream.size()) + " tokens");
  }
  check_out(out, count, stream.item_bytes());
  std::vector<Read> reads;
  stream.locate(first, count, 0, out.data(), reads);
  impl_->holder->store()->read(reads);
}

void Tokens::take(RowList list, std::span<std::byte> out) const {
  const std::shared_ptr<Store> store = impl_->holder->store();
  const TokenStream& stream = *impl_->stream;
  check_out(out, length(list), stream.item_bytes());
  std::vector<std::size_t> by_place;
  std::vector<Read> reads;
  for_pieces(list, stream.size(), [&](std::size_t first, const std::vector<std::uint64_t>& tokens) {
    // Sorted because tokens are so small that one read for several neighbours is cheaper even if
    // they are cached.
    by_place.resize(tokens.size());
    std::iota(by_place.begin(), by_place.end(), std::size_t{0});
    std::ranges::sort(by_place, {}, [&](std::size_t i) { return tokens[i]; });
    reads.clear();
    for (const std::size_t i : by_place) {
      stream.locate(tokens[i], 1, 0, out.data() + (first + i) * stream.item_bytes(), reads);
    }
    store->read(reads);
  });
}

Batch Tokens::windows(RowList starts, std::uint64_t block_size, std::string_view dtype,
                      const std::function<void()>& between) const {
  const TokenType to = parse_token_type(dtype);
  check_block(block_size, size());
  const std::uint64_t last = size() - block_size - 1;
  return std::visit(
      [&](const auto& all) {
        for (std::size_t i = 0; i < all.size(); ++i) {
          // A negative number becomes a huge one and fails this test too.
          if (static_cast<std::uint64_t>(all[i]) <= last) continue;
          throw std::out_of_range("starts: entry " + std::to_string(i) + " is " +
                                  std::to_string(all[i]) + "; a window of " +
                                  std::to_string(block_size) + " + 1 tokens can start at 0 to " +
                                  std::to_string(last));
        }
        const auto fill = [&](std::uint64_t first, std::span<std::uint64_t> out) {
          // Clamped because another thread may write to the list after it was checked.
          std::ranges::transform(all.subspan(first, out.size()), out.begin(), [last](auto start) {
            return std::min(static_cast<std::uint64_t>(start), last);
          });
        };
        return impl_->windows(all.size(), fill, block_size, to, /*keep_starts=*/false, between);
      },
      starts);
}

Batch Tokens::batch(std::uint64_t batch_size, std::uint64_t block_size, std::uint64_t seed,
                    std::string_view dtype, const std::function<void()>& between) const {
  const TokenType to = parse_token_type(dtype);
  check_block(block_size, size());
  if (batch_size == 0) throw std::invalid_argument("batch_size must be at least 1, not 0");
  const auto order = make_random(batch_size, size() - block_size, seed);
  return impl_->windows(
      batch_size,
      [&](std::uint64_t first, std::span<std::uint64_t> out) { order->fill(0, first, out); },
      block_size, to, /*keep_starts=*/true, between);
}

std::optional<std::uint64_t> Tokens::documents() const {
  if (impl_->layouts.empty()) return std::nullopt;
  std::uint64_t all = 0;
  for (const TokenLayout& layout : impl_->layouts) all += layout.documents->documents;
  return all;
}

void Tokens::document_offsets(std::uint64_t first, std::span<std::int64_t> out) const {
  const std::uint64_t count = out.size();
  const auto documents = impl_->documents();
  if (!documents) {
    throw std::invalid_argument(format() + " files do not record where documents start");
  }
  if (first > documents->size() + 1 || count > documents->size() + 1 - first) {
    throw std::out_of_range("documents " + std::to_string(first) + " to " +
                            std::to_string(first + count) + " are outside the stream of " +
                            std::to_string(documents->size()) + " documents");
  }
  std::vector<std::uint64_t> offsets(std::min<std::uint64_t>(count, 8192));
  for (std::uint64_t done = 0; done < count; done += offsets.size()) {
    offsets.resize(std::min<std::uint64_t>(offsets.size(), count - done));
    documents->offsets(first + done, offsets);
    std::ranges::copy(offsets, out.subspan(done).begin());
  }
}

std::uint64_t Tokens::fingerprint() const {
  return impl_->fingerprint();
}
Stats Tokens::stats() const {
  return impl_->holder->store()->stats();
}
void Tokens::close() {
  impl_->close();
}
bool Tokens::closed() const {
  return impl_->holder->closed();
}

}  // namespace lowtide
