// old_tokens.h - the tokens and documents of a file that a writer continues.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "os/file.h"
#include "token_format/token_output.h"

namespace lowtide {

// Reads an existing file of the same format. One thread at a time.
class OldTokens {
 public:
  // nullopt if there is no such file, or an empty one. Throws FormatError for
  // another format or dtype, and for an index that Lowtide does not write: documents of several
  // sequences, or sequences that are not one after the other. Throws IoError.
  [[nodiscard]] static std::optional<OldTokens> find(const TokenTarget& target);

  [[nodiscard]] std::uint64_t tokens() const { return layout_.tokens; }
  // Reads the bytes of the tokens, counted from the first one.
  void read(std::uint64_t offset_bytes, std::span<std::byte> out) const;
  // Calls `use` with the length of each document, in order; not at all if the format has no index.
  void for_documents(const std::function<void(std::uint64_t tokens)>& use) const;

 private:
  OldTokens(TokenLayout layout, std::shared_ptr<File> data);

  TokenLayout layout_;
  std::shared_ptr<File> data_;
};

}  // namespace lowtide
