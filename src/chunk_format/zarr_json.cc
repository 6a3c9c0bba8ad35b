#include "chunk_format/zarr_json.h"

#include <algorithm>

#include "core/quote.h"
#include "format/json_reader.h"
#include "format/layout.h"
#include "lowtide/error.h"

namespace lowtide::zarr {
namespace {

constexpr std::size_t kMaxNames = 4096;  // zarr has about a dozen

// Calls `read` with a reader of the text, all of which it must read.
template <typename Read>
auto whole(std::string_view json, const Read& read) {
  JsonReader reader(json, /*not_numbers=*/true);
  auto result = read(reader);
  reader.end();
  return result;
}

}  // namespace

Members::Members(std::string_view object) {
  all_ = whole(object, [](JsonReader& reader) {
    decltype(all_) all;
    reader.begin_object();
    std::string name;
    while (reader.next_key(&name)) {
      if (all.size() == kMaxNames) reader.fail("at most 4096 names in an object");
      all.emplace_back(name, reader.value());
    }
    return all;
  });
  std::ranges::sort(all_, {}, [](const auto& member) { return std::string_view(member.first); });
  const auto twice = std::ranges::adjacent_find(
      all_, {}, [](const auto& member) { return std::string_view(member.first); });
  if (twice != all_.end())
    throw FormatError("expected each name once, found " + excerpt(twice->first) + " twice");
}

std::string_view Members::find(std::string_view name) const {
  const auto found = std::ranges::find(
      all_, name, [](const auto& member) { return std::string_view(member.first); });
  return found == all_.end() ? std::string_view() : found->second;
}

std::string_view Members::at(std::string_view name) const {
  const std::string_view value = find(name);
  if (value.empty()) throw FormatError("expected " + excerpt(name) + ", found no such name");
  return value;
}

std::vector<std::string_view> list_of(std::string_view json) {
  return whole(json, [](JsonReader& reader) {
    std::vector<std::string_view> all;
    reader.begin_array();
    while (reader.next_item()) {
      if (all.size() == kMaxNames) reader.fail("at most 4096 entries in a list");
      all.push_back(reader.value());
    }
    return all;
  });
}

std::vector<std::uint64_t> numbers_of(std::string_view json) {
  std::vector<std::uint64_t> all;
  for (const std::string_view one : list_of(json)) all.push_back(number_of(one));
  return all;
}

std::string string_of(std::string_view json) {
  return whole(json, [](JsonReader& reader) { return reader.string(); });
}

std::uint64_t number_of(std::string_view json) {
  return whole(json, [](JsonReader& reader) { return reader.whole_number(); });
}

}  // namespace lowtide::zarr
