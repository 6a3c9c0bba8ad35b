// listed_objects.h - what an address with a pattern, or of a folder, stands for.
#pragma once

#include <string>
#include <vector>

#include "lowtide/address.h"

namespace lowtide {

// Asks the `list` of the user if there is one, else the server of the bucket, with the keys of the
// environment. One thread.
class ListedObjects {
 public:
  // Both may be nullptr.
  ListedObjects(const SignRequest& sign, const ListObjects& list) : sign_(sign), list_(list) {}

  // The addresses that a pattern matches, as a pattern of paths does; sorted by bytes. An object
  // that has exactly this name is meant alone. Throws IoError(ENOENT) if there is none.
  [[nodiscard]] std::vector<std::string> matches(const std::string& address) const;
  // The names of the objects in a folder, whose address ends with '/'; sorted by bytes. Throws
  // IoError(ENOENT) if there are none.
  [[nodiscard]] std::vector<std::string> names_in(const std::string& folder) const;
  // The same for the objects in it and in its folders; none is no error.
  [[nodiscard]] std::vector<std::string> names_below(const std::string& folder) const;

 private:
  // Sorted by bytes, without those that stand for folders. Throws std::invalid_argument where
  // nobody can be asked.
  [[nodiscard]] std::vector<std::string> list(const std::string& beginning, bool deep) const;

  const SignRequest& sign_;
  const ListObjects& list_;
};

}  // namespace lowtide
