#include "writer/old_tokens.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lowtide/error.h"
#include "os/paths.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kEntries = 512;  // of an index that are read at a time
constexpr std::uint64_t kEntryBytes = sizeof(std::int64_t);

TokenFile old_file(const std::shared_ptr<File>& file) {
  return {
      file->shard().path, file->shard().size_bytes,
      [file](std::uint64_t offset, std::span<std::byte> out) { file->read_exact(offset, out); }};
}

std::optional<TokenFile> old_file_beside(const std::string& path) {
  if (!path_exists(path)) return std::nullopt;
  return old_file(std::make_shared<File>(path));
}

// Slices of an array of int64 in a file.
class Entries {
 public:
  Entries(const File& file, std::uint64_t offset_bytes, std::uint64_t count)
      : file_(file), offset_bytes_(offset_bytes), count_(count) {}

  // Must be called for 0, 1, 2, ...
  std::uint64_t at(std::uint64_t i) {
    if (i % kEntries == 0) {
      const std::uint64_t now = std::min(kEntries, count_ - i);
      file_.read_exact(offset_bytes_ + i * kEntryBytes, std::span(room_).first(now * kEntryBytes));
    }
    return load_little<std::uint64_t>(&room_[i % kEntries * kEntryBytes]);
  }

 private:
  const File& file_;
  const std::uint64_t offset_bytes_, count_;
  std::array<std::byte, kEntries * kEntryBytes> room_;
};

}  // namespace

OldTokens::OldTokens(TokenLayout layout, std::shared_ptr<File> data)
    : layout_(std::move(layout)), data_(std::move(data)) {}

std::optional<OldTokens> OldTokens::find(const TokenTarget& target) {
  const std::string& path = target.data_path;
  if (!path_exists(path)) return std::nullopt;
  auto data = std::make_shared<File>(path);
  const bool has_index = !target.index_path.empty();
  // Megatron's reader does not open empty data; its index says the same.
  const std::shared_ptr<File> first = has_index ? std::make_shared<File>(target.index_path) : data;
  if (first->shard().size_bytes == 0) return std::nullopt;
  TokenLayout layout =
      open_token_layout(old_file(first), old_file_beside,
                        {.dtype = target.totals(0, 0).dtype, .format = target.format});
  const bool in_one_piece =
      layout.extents.empty() ||
      (layout.extents.size() == 1 && layout.extents[0].offset_bytes == target.output->header_bytes);
  if (!in_one_piece) {
    throw FormatError(path +
                      ": expected sequences one after the other, found gaps between them; "
                      "such a file cannot be continued");
  }
  return OldTokens(std::move(layout), std::move(data));
}

void OldTokens::read(std::uint64_t offset_bytes, std::span<std::byte> out) const {
  data_->read_exact(layout_.extents.at(0).offset_bytes + offset_bytes, out);
}

void OldTokens::for_documents(const std::function<void(std::uint64_t tokens)>& use) const {
  if (!layout_.documents) return;
  const DocumentIndex& index = *layout_.documents;
  const File file(index.path);
  const auto fail = [&](std::uint64_t document) {
    throw FormatError(index.path + ": document " + std::to_string(document) +
                      ": expected one sequence per document, found another number; such a file "
                      "cannot be continued");
  };
  std::uint64_t before_tokens = 0;
  if (index.by == DocumentsBy::token_ends) {
    Entries ends(file, index.documents_offset_bytes, index.documents);
    for (std::uint64_t d = 0; d < index.documents; ++d) {
      const std::uint64_t end = ends.at(d);
      use(end - std::exchange(before_tokens, end));
    }
    return;
  }
  if (index.documents != index.sequences) fail(0);
  Entries boundaries(file, index.documents_offset_bytes, index.documents);
  Entries pointers(file, index.pointers_offset_bytes, index.sequences);
  std::uint64_t before_bytes = 0;
  for (std::uint64_t d = 0; d < index.documents; ++d) {
    if (boundaries.at(d) != d) fail(d);
    const std::uint64_t start_bytes = pointers.at(d);
    if (d > 0) use((start_bytes - before_bytes) / layout_.dtype.itemsize_bytes);
    before_bytes = start_bytes;
  }
  if (index.documents > 0) use(layout_.tokens - before_bytes / layout_.dtype.itemsize_bytes);
}

}  // namespace lowtide
