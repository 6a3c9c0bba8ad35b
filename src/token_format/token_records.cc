#include "token_format/token_records.h"

#include <algorithm>
#include <utility>

namespace lowtide {

bool TokenRecords::stays_regular(std::uint32_t offset_bytes, std::uint32_t tokens) const {
  if (documents_ == 0) return true;
  if (tokens != each_tokens_ || offset_bytes < first_offset_bytes_) return false;
  if (documents_ == 1) return true;
  return offset_bytes - first_offset_bytes_ == std::uint64_t{stride_bytes_} * documents_;
}

void TokenRecords::add(std::uint32_t offset_bytes, std::uint32_t tokens) {
  if (regular() && stays_regular(offset_bytes, tokens)) {
    if (documents_ == 0) {
      first_offset_bytes_ = offset_bytes;
      each_tokens_ = tokens;
    } else if (documents_ == 1) {
      stride_bytes_ = offset_bytes - first_offset_bytes_;
    }
  } else {
    if (regular()) {
      std::vector<Record> table;
      table.reserve(std::max(most_, documents_ + 1));
      for (std::uint32_t i = 0; i < documents_; ++i) table.push_back((*this)[i]);
      table_ = std::move(table);
    }
    table_.push_back({offset_bytes, static_cast<std::uint32_t>(tokens_)});
  }
  tokens_ += tokens;
  ++documents_;
}

TokenRecords::Record TokenRecords::operator[](std::uint64_t document) const {
  if (!regular()) return table_[document];
  const auto number = static_cast<std::uint32_t>(document);
  return {first_offset_bytes_ + number * stride_bytes_, number * each_tokens_};
}

std::uint64_t TokenRecords::document_of(std::uint64_t token) const {
  if (regular()) return token / each_tokens_;
  // The last one that starts at or before the token: empty ones before it start there, too.
  const auto after = std::ranges::upper_bound(table_, token, {}, &Record::first_token);
  return static_cast<std::uint64_t>(after - table_.begin() - 1);
}

}  // namespace lowtide
