// What info says about an array or a group in a folder (zarr). Reads metadata and the names of
// files; no chunk is opened for its place.
#include <utility>

#include "chunk_folder/chunk_folder.h"
#include "chunk_format/chunked_array.h"
#include "format/descr.h"
#include "inspect/info.h"
#include "lowtide/error.h"
#include "os/paths.h"

namespace lowtide {
namespace {

constexpr int kDeepest = 96;  // groups in groups, and one folder per axis

void list_files(const std::string& folder, int depth, std::vector<std::string>* files) {
  if (depth == kDeepest)
    throw FormatError(folder + ": the folders are too deep for an array in chunks");
  for (const std::string& name : list_folder(folder)) {
    const std::string path = folder + "/" + name;
    if (is_folder(path)) {
      list_files(path, depth + 1, files);
    } else {
      files->push_back(path);
    }
  }
}

}  // namespace

std::optional<Info> info_of_chunks(std::span<const std::string> paths, const InfoOptions& options) {
  if (paths.size() != 1 || !is_chunk_folder(paths[0]) || options.kind == FileKind::tokens)
    return std::nullopt;
  const std::string folder = whole_path(paths[0]);
  Info found;
  found.path = paths[0];
  found.kind = FileKind::array;
  std::vector<ArrayMember> members = folder_members(folder);
  if (members.empty()) throw FormatError(folder + ": expected an array, found none in the group");
  found.format = members.front().layout.format;
  const bool is_array = members.size() == 1 && members[0].key.empty();
  if (is_array || options.key || members.size() == 1) {
    const ArrayMember& one =
        is_array && !options.key ? members[0] : chosen_member(members, "", options.key, folder);
    if (!one.fault.empty()) throw FormatError(one.fault);
    found.dtype = dtype_name(one.layout.dtype);
    found.shape = one.layout.shape;
    raw::Description given;
    if (options.dtype) given.dtype = parse_descr(*options.dtype);
    given.shape = options.shape;
    given.offset_bytes = options.offset_bytes;
    given.fortran_order = options.fortran_order;
    check_agrees(one.layout, given, folder);
  }
  for (ArrayMember& member : members) {
    if (is_array) break;
    ArrayInfo& one = found.arrays.emplace_back();
    one.key = std::move(member.key);
    one.fault = std::move(member.fault);
    if (!one.fault.empty()) continue;
    one.dtype = dtype_name(member.layout.dtype);
    one.shape = std::move(member.layout.shape);
    one.bytes = member.layout.data_bytes;
  }
  std::vector<std::string> files;
  list_files(options.key ? folder + "/" + *options.key : folder, 0, &files);
  add_files(&found, files);
  found.shards = found.files.size();
  sum_cached(&found);
  return found;
}

}  // namespace lowtide
