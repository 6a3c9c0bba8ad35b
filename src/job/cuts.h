// cuts.h - where documents begin in a stream that records only the token between them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "lowtide/tokens.h"

namespace lowtide {

// Where every n-th document begins: enough to find any other without reading all that is before it.
struct Cuts {
  static constexpr std::size_t kMost = 512;  // so that a plan stays small

  std::uint64_t every = 1;
  std::vector<std::uint64_t> starts;  // of documents 0, every, 2 * every, ...

  // The next document that `number` says begins there. Forgets every second one if there are too
  // many.
  void add(std::uint64_t number, std::uint64_t start);

  // As one fact of a plan. Throws std::invalid_argument.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] static Cuts parse(const std::string& text);
};

// Finds the token between documents. Immutable; any thread.
class CutFinder {
 public:
  // Of tokens with an `eot`. Throws std::invalid_argument if it does not fit their type.
  explicit CutFinder(const Tokens& tokens);

  // Calls found(cut) for every place in the block between two documents, in tokens from its
  // beginning, until it returns false. A token that begins a document cuts before itself, one that
  // ends it behind itself.
  template <typename Found>
  void scan(std::span<const std::byte> block, Found found) const {
    switch (item_bytes_) {
      case 1:
        return scan_as<std::uint8_t>(block, found);
      case 2:
        return scan_as<std::uint16_t>(block, found);
      case 4:
        return scan_as<std::uint32_t>(block, found);
      default:
        return scan_as<std::uint64_t>(block, found);
    }
  }

 private:
  template <typename Id, typename Found>
  void scan_as(std::span<const std::byte> block, Found& found) const {
    const std::size_t count = block.size() / sizeof(Id);
    const auto eot = static_cast<Id>(eot_);
    constexpr std::size_t kStep = 256;  // without a branch per token, so that it is vectorised
    std::array<Id, kStep> ids;
    for (std::size_t first = 0; first < count; first += kStep) {
      const std::size_t now = std::min(kStep, count - first);
      std::memcpy(ids.data(), block.data() + first * sizeof(Id), now * sizeof(Id));
      unsigned any = 0;
      for (std::size_t i = 0; i < now; ++i) any |= static_cast<unsigned>(ids[i] == eot);
      if (any == 0) continue;
      for (std::size_t i = 0; i < now; ++i) {
        if (ids[i] == eot && !found(first + i + (begins_ ? 0 : 1))) return;
      }
    }
  }

  std::uint64_t eot_ = 0;  // as it is stored
  std::size_t item_bytes_ = 0;
  bool begins_ = false;
};

}  // namespace lowtide
