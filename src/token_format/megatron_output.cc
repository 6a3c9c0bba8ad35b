#include <array>
#include <limits>

#include "token_format/megatron.h"

namespace lowtide::megatron {
namespace {

constexpr std::string_view kWrittenMagic("MMIDIDX\0\0", 9);
constexpr std::uint64_t kWrittenVersion = 1;
constexpr std::uint64_t kWrittenHeaderBytes = 34;

// The types and their codes, in the same order.
constexpr std::array kTypes{TokenType::u8,  TokenType::i8,  TokenType::u16,
                            TokenType::i16, TokenType::i32, TokenType::i64};
constexpr std::array<std::uint8_t, kTypes.size()> kCodes{1, 2, 8, 3, 4, 5};

void store_index_header(const TokenTotals& totals, std::span<std::byte> out) {
  const auto* const type = std::ranges::find(kTypes, token_type(totals.dtype).value());
  std::memcpy(out.data(), kWrittenMagic.data(), kWrittenMagic.size());
  store_little(kWrittenVersion, &out[9]);
  store_little(kCodes[static_cast<std::size_t>(type - kTypes.begin())], &out[17]);
  store_little(totals.sequences.value_or(totals.documents), &out[18]);
  store_little(totals.documents + 1, &out[26]);
}

void store_length(const DocumentPlace& document, std::byte* entry) {
  store_little(static_cast<std::int32_t>(document.tokens), entry);
}

void store_pointer(const DocumentPlace& document, std::byte* entry) {
  store_little(static_cast<std::int64_t>(document.first_token * document.item_bytes), entry);
}

void store_boundary(const DocumentPlace& document, std::byte* entry) {
  store_little(static_cast<std::int64_t>(document.number), entry);
}

std::uint64_t load_length(const std::byte* entry, std::uint64_t /*first_token*/) {
  return load_little<std::uint32_t>(entry);
}

constexpr std::array kColumns{
    IndexColumn{.entry_bytes = sizeof(std::int32_t), .store = store_length},
    IndexColumn{.entry_bytes = sizeof(std::int64_t), .store = store_pointer},
    IndexColumn{.entry_bytes = sizeof(std::int64_t),
                .has_end = true,
                .of_documents = true,
                .store = store_boundary}};

constexpr IndexOutput kIndex{.header_bytes = kWrittenHeaderBytes,
                             .store_header = store_index_header,
                             .columns = kColumns,
                             .load_tokens = load_length};

}  // namespace

constinit const TokenOutput kOutput{
    .types = kTypes,
    .most_document_tokens = std::numeric_limits<std::int32_t>::max(),
    .index = &kIndex};

}  // namespace lowtide::megatron
