// tier_folder.h - a folder in which several processes keep blocks of objects, and its limit.
//
// Beside the files of each KeptObject there is a file per user in users/, locked as long as the
// user lives, with the keys of the objects that it reads. Those are never removed. An epoch over
// more than the folder may hold would otherwise remove each block just before it is needed again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "os/write_file.h"

namespace lowtide {

// One thread at a time.
class TierFolder {
 public:
  // Makes the folder. `limit_bytes` 0: a tenth of the file system stays free. Throws IoError.
  TierFolder(std::string path, std::uint64_t limit_bytes);
  ~TierFolder();
  TierFolder(const TierFolder&) = delete;
  TierFolder& operator=(const TierFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  // Registers the objects that this process reads. Throws IoError.
  void use(const std::vector<std::string>& keys);
  // Whether `bytes` more may be kept. Looks at the folder when 64 MiB were allowed since the last
  // look, and removes objects that nobody uses if there is no room, the least recently opened ones
  // first. So the folder may exceed its limit by that much per process. Throws IoError.
  [[nodiscard]] bool allows(std::uint64_t bytes);

 private:
  struct Item;
  [[nodiscard]] std::vector<Item> items(const std::vector<std::string>& names) const;
  [[nodiscard]] std::vector<std::string> keys_in_use() const;
  void look(std::uint64_t bytes);

  const std::string path_;
  const std::uint64_t limit_bytes_;
  std::string user_path_;
  std::optional<WriteFile> user_;  // holds the lock
  std::uint64_t allowance_bytes_ = 0;
};

}  // namespace lowtide
