// listing.h - which objects a bucket has: the question for a page of its list, and the answer. Pure
// text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lowtide {

struct ListingPage {
  std::vector<std::string> keys;  // names as they are; in the order of the answer
  std::string next;               // asks for the page behind this one; empty: it is the last
};

// The query of ListObjectsV2 for the keys that begin with `prefix`; `next` is that of the page
// before, or empty. Without `deep`, keys with a '/' behind the prefix are left out. Its names are
// sorted, as a signature needs them.
[[nodiscard]] std::string listing_query(std::string_view prefix, bool deep, std::string_view next);

// Throws FormatError, whose text begins with `shown`, for a text that is no such answer, that is
// cut, or that says there is more but not how to ask for it.
[[nodiscard]] ListingPage parse_listing(std::string_view xml, std::string_view shown);

// An address that may stand for several objects, taken apart.
struct ListedAddress {
  std::string beginning;  // of all objects that are meant: the address up to the first *, ? or [
  bool folder = false;    // it ends with '/': the objects in it are meant
  bool deep = false;      // a '/' follows the first *, ? or [
};
// Whether it may: it has a *, a ? or a [, or ends with '/'. In http:// and https:// only a '*'
// counts: '?' begins a query.
[[nodiscard]] bool is_listed(std::string_view address);
[[nodiscard]] ListedAddress listed_address(std::string_view address);

}  // namespace lowtide
