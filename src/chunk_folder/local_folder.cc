#include "chunk_folder/local_folder.h"

#include <algorithm>

#include "chunk_folder/chunk_folder.h"
#include "chunk_format/chunked_array.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "os/file.h"
#include "os/paths.h"

namespace lowtide {

std::string joined(const std::string& folder, std::string_view name) {
  return folder.empty() ? std::string(name) : folder + "/" + std::string(name);
}

void check_metadata_size(const Shard& shard, std::uint64_t most_bytes) {
  if (shard.size_bytes <= most_bytes) return;
  throw FormatError(shard.path + ": expected at most " + format_bytes(most_bytes) +
                    " of metadata, found " + format_bytes(shard.size_bytes));
}

std::optional<FolderFiles::Text> LocalFolder::read(const std::string& name,
                                                   std::uint64_t most_bytes) const {
  const std::string path = joined(path_, name);
  if (!path_exists(path)) return std::nullopt;
  const File file(path);
  Text found{.text = {}, .shard = file.shard()};
  check_metadata_size(found.shard, most_bytes);
  found.text.resize(found.shard.size_bytes);
  file.read_exact(0, std::as_writable_bytes(std::span(found.text)));
  return found;
}

std::vector<std::string> LocalFolder::folders_in(const std::string& inside) const {
  const std::string folder = inside.empty() ? path_ : joined(path_, inside);
  std::vector<std::string> names = list_folder(folder);
  std::erase_if(names, [&](const std::string& name) { return !is_folder(joined(folder, name)); });
  return names;
}

void LocalFolder::look(std::span<const std::string> names, const Wanted& wanted,
                       const Found& found) const {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string path = joined(path_, names[i]);
    if (!path_exists(path)) continue;
    const File file(path);
    const Range range = wanted(file.shard());
    std::vector<std::byte> bytes(range.size_bytes);
    file.read_exact(range.offset_bytes, bytes);
    found(i, file.shard(), bytes);
  }
}

bool is_chunk_folder(const std::string& path) {
  return is_folder(path) && std::ranges::any_of(metadata_files(), [&](std::string_view name) {
           return path_exists(joined(path, name));
         });
}

}  // namespace lowtide
