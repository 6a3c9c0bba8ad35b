#include "opener/listed_objects.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <stdexcept>

#include "http/listing.h"
#include "http/s3.h"
#include "lowtide/error.h"
#include "os/paths.h"

namespace lowtide {

std::vector<std::string> ListedObjects::list(const std::string& beginning, bool deep) const {
  std::vector<std::string> found;
  if (list_) {
    found = list_(beginning, deep);
  } else if (sign_) {
    throw std::invalid_argument(
        shown_address(beginning) +
        ": this store cannot list objects; name each object, or give the store a method list");
  } else if (parse_scheme(beginning) == "s3") {
    found = list_bucket(beginning, deep);
  } else {
    throw std::invalid_argument(
        shown_address(beginning) +
        ": a server at http:// or https:// does not list its objects; pass a list of all objects, "
        "or use s3:// or a store that lists");
  }
  std::erase_if(found, [&](const std::string& address) {
    return !address.starts_with(beginning) || address.ends_with('/') ||
           (!deep && address.find('/', beginning.size()) != address.npos);
  });
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<std::string> ListedObjects::matches(const std::string& address) const {
  const ListedAddress pattern = listed_address(address);
  std::vector<std::string> found = list(pattern.beginning, pattern.deep);
  if (std::ranges::binary_search(found, address)) return {address};
  // Schemes and buckets have no such characters, so the whole address can be the pattern.
  std::erase_if(found, [&](const std::string& one) { return !matches_pattern(address, one); });
  if (found.empty()) {
    throw IoError(ENOENT, "open", shown_address(address), std::nullopt,
                  "no object matches this pattern");
  }
  return found;
}

std::vector<std::string> ListedObjects::names_in(const std::string& folder) const {
  std::vector<std::string> names = list(folder, /*deep=*/false);
  if (names.empty()) {
    throw IoError(ENOENT, "open", shown_address(folder), std::nullopt,
                  "no object is in this folder");
  }
  for (std::string& name : names) name.erase(0, folder.size());
  return names;
}

std::vector<std::string> ListedObjects::names_below(const std::string& folder) const {
  std::vector<std::string> names = list(folder, /*deep=*/true);
  for (std::string& name : names) name.erase(0, folder.size());
  return names;
}

}  // namespace lowtide
