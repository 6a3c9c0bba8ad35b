// What info says about a sparse matrix in a folder (BioNeMo-SCDL), as far as its header goes.
#include <array>

#include "format/sparse_header.h"
#include "inspect/info.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "os/file.h"
#include "os/paths.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kStartBytes = 4;

// Whether the caller leaves it to the files what they are.
bool asks_plainly(const InfoOptions& options) {
  return !options.kind && !options.dtype && !options.shape && !options.offset_bytes &&
         !options.fortran_order && !options.key &&
         (!options.format || *options.format == scdl::kFormat);
}

}  // namespace

bool is_sparse_folder(std::span<const std::string> paths, const InfoOptions& options) {
  if (paths.size() != 1 || !asks_plainly(options) || !is_folder(paths[0])) return false;
  const std::string path = paths[0] + "/" + std::string(scdl::kHeaderFile);
  if (!path_exists(path) || is_folder(path)) return false;
  const File file(path);
  if (file.shard().size_bytes < kStartBytes) return false;
  std::array<std::byte, kStartBytes> start{};
  file.read_exact(0, start);
  return scdl::is_header(start);
}

std::optional<Info> info_of_sparse(std::span<const std::string> paths, const InfoOptions& options) {
  if (!is_sparse_folder(paths, options)) return std::nullopt;
  const std::string folder = whole_path(paths[0]);
  const File file(folder + "/" + std::string(scdl::kHeaderFile));
  const std::uint64_t size = file.shard().size_bytes;
  if (size > scdl::kMaxHeaderBytes) {
    throw FormatError(file.shard().path + ": expected at most " +
                      format_bytes(scdl::kMaxHeaderBytes) + ", found " + format_bytes(size));
  }
  std::vector<std::byte> text(size);
  file.read_exact(0, text);
  scdl::Header header = scdl::parse_header(text, file.shard().path);
  Info found;
  found.path = paths[0];
  found.kind = FileKind::sparse;
  found.format = scdl::kFormat;
  found.dtype = header.data.dtype;
  found.shape = {header.rows.length - 1};
  found.values = header.data.length;
  std::vector<std::string> files;
  for (const scdl::Part* const part : header.parts())
    files.push_back(folder + "/" + std::string(part->file));
  add_files(&found, files);
  found.shards = found.files.size();
  sum_cached(&found);
  return found;
}

}  // namespace lowtide
