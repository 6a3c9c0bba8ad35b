// zarr_json.h - objects and lists of JSON by name and by number, for metadata whose members come in
// any order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lowtide::zarr {

// The members of a JSON object as texts, borrowed from it. All methods throw FormatError.
class Members {
 public:
  // Throws for a name that occurs twice, and for more than 4096 members.
  explicit Members(std::string_view object);

  // The value of a member; empty if there is none.
  [[nodiscard]] std::string_view find(std::string_view name) const;
  // The same; throws if there is none.
  [[nodiscard]] std::string_view at(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string_view>> all_;
};

[[nodiscard]] std::vector<std::string_view> list_of(std::string_view json);
[[nodiscard]] std::vector<std::uint64_t> numbers_of(std::string_view json);
[[nodiscard]] std::string string_of(std::string_view json);
[[nodiscard]] std::uint64_t number_of(std::string_view json);

}  // namespace lowtide::zarr
