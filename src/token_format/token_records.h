// token_records.h - where the documents of one file are, if other bytes separate their tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lowtide {

// Documents in the order of the file, which is shorter than 4 GiB. Takes 8 bytes per document, or
// nothing that grows if all have equally many tokens at equal distances, as samples of a fixed
// length have. Filled by one thread; immutable afterwards and usable from any thread.
class TokenRecords {
 public:
  struct Record {
    std::uint32_t offset_bytes = 0;
    std::uint32_t first_token = 0;  // in the file
  };

  // `documents` is the number of documents to come, so that the table is allocated once.
  explicit TokenRecords(std::uint32_t documents) : most_(documents) {}
  // Whether the documents are still regular() with this one.
  [[nodiscard]] bool stays_regular(std::uint32_t offset_bytes, std::uint32_t tokens) const;
  // The next document; an empty one counts. The sum of all tokens must be below 2^32.
  void add(std::uint32_t offset_bytes, std::uint32_t tokens);
  // What the table takes if documents differ in length.
  [[nodiscard]] static std::uint64_t table_bytes(std::uint64_t documents) {
    return documents * sizeof(Record);
  }

  [[nodiscard]] std::uint64_t documents() const { return documents_; }
  [[nodiscard]] std::uint64_t tokens() const { return tokens_; }
  // Whether all documents are at equal distances and equally long.
  [[nodiscard]] bool regular() const { return table_.empty(); }
  [[nodiscard]] std::uint64_t held_bytes() const { return table_.capacity() * sizeof(Record); }

  // Requires document < documents().
  [[nodiscard]] Record operator[](std::uint64_t document) const;
  // The first token of a document; that of documents() is tokens().
  [[nodiscard]] std::uint64_t first_token(std::uint64_t document) const {
    return document < documents_ ? (*this)[document].first_token : tokens_;
  }
  // The document that contains a token. Requires token < tokens().
  [[nodiscard]] std::uint64_t document_of(std::uint64_t token) const;

 private:
  std::uint32_t most_;
  std::uint32_t documents_ = 0;
  std::uint32_t first_offset_bytes_ = 0;
  std::uint32_t stride_bytes_ = 0;  // known from the second document on
  std::uint32_t each_tokens_ = 0;
  std::uint64_t tokens_ = 0;
  std::vector<Record> table_;  // empty while they are regular
};

}  // namespace lowtide
