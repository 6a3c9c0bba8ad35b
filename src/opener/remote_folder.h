// remote_folder.h - the files of a folder on a server.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chunk_folder/folder_files.h"
#include "opener/listed_objects.h"
#include "opener/source_file.h"

namespace lowtide {

// Whether an address may be that of an array or a group in chunks: it ends with '/', or with the
// name of such a format behind a '.'.
[[nodiscard]] bool is_folder_address(std::string_view address);

// Only folders_in() needs a list of objects: others are opened by their names, many at once. One
// that does not exist is a request that the server answers with 404.
class RemoteFolder final : public FolderFiles {
 public:
  // Borrows the opener and what lists.
  RemoteFolder(std::string address, SourceOpener& opener, const ListedObjects& listed);

  [[nodiscard]] const std::string& path() const override { return path_; }
  [[nodiscard]] std::optional<Text> read(const std::string& name,
                                         std::uint64_t most_bytes) const override;
  [[nodiscard]] std::vector<std::string> folders_in(const std::string& inside) const override;
  void look(std::span<const std::string> names, const Wanted& wanted,
            const Found& found) const override;

 private:
  const std::string address_;
  const std::string path_;
  SourceOpener& opener_;
  const ListedObjects& listed_;
  mutable std::optional<std::vector<std::string>> metadata_;  // all files of metadata, once listed
};

}  // namespace lowtide
