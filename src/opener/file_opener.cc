#include <utility>

#include "http/address.h"
#include "lowtide/files.h"
#include "opener/listed_objects.h"
#include "opener/source_file.h"
#include "os/paths.h"

namespace lowtide {
namespace {

// Enough to see what an object is. A caller may hold thousands of them.
constexpr std::uint64_t kFirstBytes = 4096;

}  // namespace

class OpenerState {
 public:
  OpenerState(const SignRequest& sign, const ListObjects& list)
      : sign_(sign), list_(list), opener(sign, kFirstBytes), listed(sign_, list_) {}

 private:
  const SignRequest sign_;
  const ListObjects list_;

 public:
  SourceOpener opener;
  const ListedObjects listed;
};

namespace {

LocatedFile located(Shard shard) {
  return {std::move(shard.path), shard.size_bytes, shard.version, std::move(shard.remote)};
}

}  // namespace

FileReader::FileReader(std::shared_ptr<const SourceFile> source)
    : source_(std::move(source)), file_(located(source_->shard())) {}

void FileReader::read(std::span<const FileRange> ranges) const {
  if (source_->remote() == nullptr) {
    for (const FileRange& range : ranges) source_->read_exact(range.offset_bytes, range.out);
    return;
  }
  std::vector<RemoteFile::Range> wanted;
  for (const FileRange& range : ranges)
    wanted.push_back({source_->remote().get(), range.offset_bytes, range.out});
  RemoteFile::read_all(wanted);
}

FileOpener::FileOpener(const SignRequest& sign, const ListObjects& list)
    : impl_(std::make_shared<OpenerState>(sign, list)) {}

FileReader FileOpener::open(const std::string& path) {
  return FileReader(impl_->opener.open(path));
}

std::optional<FileReader> FileOpener::open_if_there(const std::string& path) {
  std::shared_ptr<SourceFile> file = impl_->opener.open_if_there(path);
  if (file == nullptr) return std::nullopt;
  return FileReader(std::move(file));
}

std::vector<std::string> FileOpener::names_in(const std::string& folder) const {
  return is_address(folder) ? impl_->listed.names_in(folder) : list_folder(folder);
}

std::string path_in(const std::string& folder, const std::string& name) {
  return is_address(folder) ? address_in(folder, name) : folder + "/" + name;
}

}  // namespace lowtide
