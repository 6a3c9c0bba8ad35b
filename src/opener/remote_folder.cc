#include "opener/remote_folder.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "chunk_folder/local_folder.h"
#include "chunk_format/chunked_array.h"
#include "http/address.h"

namespace lowtide {
namespace {

std::string without_slash(std::string address) {
  while (address.ends_with('/')) address.pop_back();
  return address;
}

}  // namespace

bool is_folder_address(std::string_view address) {
  if (!is_address(address)) return false;
  const std::string path = shown_address(address);
  if (path.find('/', path.find("://") + 3) == path.npos) return false;  // only a server
  return path.ends_with('/') || std::ranges::any_of(chunk_words(), [&](std::string_view word) {
           return path.ends_with("." + std::string(word));
         });
}

RemoteFolder::RemoteFolder(std::string address, SourceOpener& opener, const ListedObjects& listed)
    : address_(std::move(address)),
      path_(without_slash(shown_address(address_))),
      opener_(opener),
      listed_(listed) {}

std::optional<FolderFiles::Text> RemoteFolder::read(const std::string& name,
                                                    std::uint64_t most_bytes) const {
  const std::shared_ptr<SourceFile> file = opener_.open_if_there(address_in(address_, name));
  if (file == nullptr) return std::nullopt;
  Text found{.text = {}, .shard = file->shard()};
  check_metadata_size(found.shard, most_bytes);
  found.text.resize(found.shard.size_bytes);
  file->read_exact(0, std::as_writable_bytes(std::span(found.text)));
  return found;
}

std::vector<std::string> RemoteFolder::folders_in(const std::string& inside) const {
  if (!metadata_) {
    metadata_ = listed_.names_below(address_in(address_, ""));
    std::erase_if(*metadata_, [](const std::string& name) {
      const std::string last = name.substr(name.rfind('/') + 1);
      return std::ranges::find(metadata_files(), last) == metadata_files().end();
    });
  }
  const std::string before = inside.empty() ? "" : inside + "/";
  std::vector<std::string> names;
  for (const std::string& name : *metadata_) {
    if (!name.starts_with(before)) continue;
    const std::size_t end = name.find('/', before.size());
    if (end == name.npos) continue;
    std::string folder = name.substr(before.size(), end - before.size());
    // They are sorted, so those of one folder follow each other.
    if (names.empty() || names.back() != folder) names.push_back(std::move(folder));
  }
  return names;
}

void RemoteFolder::look(std::span<const std::string> names, const Wanted& wanted,
                        const Found& found) const {
  std::vector<std::string> addresses;
  for (const std::string& name : names) addresses.push_back(address_in(address_, name));
  const std::vector<std::shared_ptr<RemoteFile>> files = opener_.open_objects(addresses);
  std::vector<std::vector<std::byte>> bytes(files.size());
  std::vector<RemoteFile::Range> ranges;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i] == nullptr) continue;
    const Range range = wanted(files[i]->shard());
    bytes[i].resize(range.size_bytes);
    if (range.size_bytes > 0) ranges.push_back({files[i].get(), range.offset_bytes, bytes[i]});
  }
  RemoteFile::read_all(ranges);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i] != nullptr) found(i, files[i]->shard(), bytes[i]);
  }
}

}  // namespace lowtide
