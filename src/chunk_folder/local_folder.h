// local_folder.h - the files of a folder on the local disk.
#pragma once

#include <string>
#include <string_view>

#include "chunk_folder/folder_files.h"

namespace lowtide {

// "folder/name"; the name alone if there is no folder.
[[nodiscard]] std::string joined(const std::string& folder, std::string_view name);

// Throws FormatError for a file of metadata that has more than `most_bytes`.
void check_metadata_size(const Shard& shard, std::uint64_t most_bytes);

class LocalFolder final : public FolderFiles {
 public:
  explicit LocalFolder(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const override { return path_; }
  [[nodiscard]] std::optional<Text> read(const std::string& name,
                                         std::uint64_t most_bytes) const override;
  [[nodiscard]] std::vector<std::string> folders_in(const std::string& inside) const override;
  void look(std::span<const std::string> names, const Wanted& wanted,
            const Found& found) const override;

 private:
  const std::string path_;
};

}  // namespace lowtide
