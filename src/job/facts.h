// facts.h - what a plan is made of, as text: one line per fact, with a checksum.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lowtide {

// Names and values in the order in which they were added; a name may come more than once. One
// thread at a time while it is filled.
class Facts {
 public:
  Facts() = default;

  void add(std::string name, std::string value);
  void add(std::string name, std::uint64_t value) { add(std::move(name), std::to_string(value)); }
  template <typename T>
  void add(std::string name, const std::optional<T>& value) {
    if (value) add(std::move(name), *value);
  }

  // These throw std::invalid_argument if there is no such fact, or if it is not a number.
  [[nodiscard]] const std::string& at(std::string_view name) const;
  [[nodiscard]] std::uint64_t number(std::string_view name) const;
  [[nodiscard]] const std::string* find(std::string_view name) const;  // nullptr: none
  [[nodiscard]] std::optional<std::uint64_t> find_number(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> all(std::string_view name) const;

  // Equal facts have equal hashes, on every machine.
  [[nodiscard]] std::uint64_t hash() const;
  // Any bytes in names and values survive.
  [[nodiscard]] std::string text() const;
  // Throws std::invalid_argument for a text of another version or with a wrong checksum.
  [[nodiscard]] static Facts parse(std::string_view text);

 private:
  std::vector<std::pair<std::string, std::string>> facts_;
};

// Throws std::invalid_argument unless all of the text is a number.
[[nodiscard]] std::uint64_t parse_number(std::string_view name, std::string_view text);

}  // namespace lowtide
