#include "lowtide/info.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "chunk_folder/chunk_folder.h"
#include "chunk_format/chunked_array.h"
#include "face/array_impl.h"
#include "face/tokens_impl.h"
#include "format/array_header.h"
#include "format/descr.h"
#include "format/registry.h"
#include "http/local_path.h"
#include "inspect/info.h"
#include "lowtide/array.h"
#include "lowtide/error.h"
#include "os/paths.h"
#include "os/residency.h"
#include "token_format/token_list.h"
#include "token_format/token_names.h"

namespace lowtide {
namespace {

bool has_word(const std::vector<std::string_view>& words, const std::optional<std::string>& word) {
  return word && std::ranges::find(words, *word) != words.end();
}

std::vector<std::string_view> all_array_words() {
  std::vector<std::string_view> words = array_words();
  words.insert(words.end(), chunk_words().begin(), chunk_words().end());
  return words;
}

// The first file that has bytes: it is examined on behalf of all.
std::shared_ptr<File> first_file(std::span<const std::string> paths) {
  std::shared_ptr<File> file;
  for (const std::string& path : paths) {
    file = std::make_shared<File>(path);
    if (file->shard().size_bytes != 0) break;
  }
  return file;
}

FileKind kind_of_file(std::span<const std::string> paths, const InfoOptions& options) {
  TokenGiven given;
  if (options.dtype) given.dtype = parse_descr(*options.dtype);
  return looks_like_tokens(token_file(first_file(paths)), open_beside, given) ? FileKind::tokens
                                                                              : FileKind::array;
}

// Not if they could be tokens: one axis of integers.
bool holds_arrays(const std::string& folder, const InfoOptions& options) {
  const std::vector<std::string> files = array_files_in(folder, list_folder(folder));
  if (files.empty()) return false;
  const std::shared_ptr<File> first = first_file(files);
  const std::string& path = first->shard().path;
  if (first->shard().size_bytes == 0 || kind_of_file({&path, 1}, options) == FileKind::tokens) {
    return false;
  }
  const Array array = Array::open(path, {.read = kNoReads});
  const char kind = array.dtype().kind;
  return array.shape().size() != 1 || (kind != 'i' && kind != 'u');
}

// Whether the path is an index.json that lists token files, or a folder with one.
bool has_list(const std::string& path, bool expand) {
  return is_token_list(path) ||
         (expand && is_folder(path) && path_exists(path + "/" + std::string(kTokenListName)));
}

// Options that rule a kind out decide before anything is opened. With a list of files, a key names
// a column of tokens.
std::optional<FileKind> kind_asked(const InfoOptions& options, bool listed) {
  const bool of_array =
      options.shape || options.offset_bytes || options.fortran_order || (options.key && !listed);
  const bool array_word = has_word(all_array_words(), options.format);
  const bool token_word = has_word(token_words(), options.format);
  const bool of_tokens = token_word && !array_word;
  if (of_array && (of_tokens || options.kind == FileKind::tokens)) {
    throw std::invalid_argument(
        "shape, offset and order describe an array, and key an array or a column of an MDS folder; "
        "leave them out for these tokens");
  }
  if (options.kind) return options.kind;
  if (of_tokens) return FileKind::tokens;
  if (of_array || (array_word && !token_word)) return FileKind::array;
  return std::nullopt;
}

void check_format(const Info& found, const InfoOptions& options) {
  if (!options.format || *options.format == found.format) return;
  if (const auto words = all_array_words(); !has_word(words, options.format)) {
    std::string expected;
    for (const std::string_view word : words) {
      expected += (expected.empty() ? "one of " : ", ") + std::string(word);
    }
    throw std::invalid_argument("format: expected " + expected + " for an array, found \"" +
                                *options.format + "\"");
  }
  throw FormatError(found.path + ": expected format " + *options.format + ", found " +
                    found.format);
}

std::vector<ArrayInfo> arrays_in(const File& file, std::string* format) {
  const auto read = [&](std::uint64_t offset_bytes, std::span<std::byte> out) {
    file.read_exact(offset_bytes, out);
  };
  std::vector<ArrayInfo> arrays;
  for (ArrayMember& member : array_members(file.shard().path, file.shard().size_bytes, read)) {
    *format = member.layout.format;
    ArrayInfo& one = arrays.emplace_back();
    one.key = std::move(member.key);
    one.fault = std::move(member.fault);
    if (!one.fault.empty()) continue;
    one.dtype = dtype_name(member.layout.dtype);
    one.shape = std::move(member.layout.shape);
    one.fortran_order = member.layout.fortran_order;
    one.bytes = member.layout.data_bytes;
  }
  return arrays;
}

Info info_of(const Array& array) {
  Info found;
  found.kind = FileKind::array;
  found.format = array.format();
  found.dtype = dtype_name(array.dtype());
  found.shape = array.shape();
  found.fortran_order = array.fortran_order();
  add_files(&found, Array::Impl::of(array)->rows->shards()->paths());
  std::string format;
  if (has_header(found.format)) found.arrays = arrays_in(File(array.paths().front()), &format);
  return found;
}

Info info_of(const Tokens& tokens) {
  Info found;
  found.kind = FileKind::tokens;
  found.format = tokens.format();
  found.dtype = dtype_name(tokens.dtype());
  found.shape = {tokens.size()};
  found.documents = tokens.documents();
  add_files(&found, tokens.paths());
  found.shards = found.files.size();
  if (!found.documents) return found;
  std::vector<std::string> indexes;
  for (const std::string& path : tokens.paths()) {
    std::optional<std::string> index = index_beside(path);
    if (index && path_exists(*index)) indexes.push_back(*std::move(index));  // else it was named
  }
  const std::vector<std::string>& lists = Tokens::Impl::of(tokens)->lists;
  indexes.insert(indexes.end(), lists.begin(), lists.end());
  add_files(&found, indexes);
  return found;
}

Info checked(Info found, const InfoOptions& options) {
  check_format(found, options);
  return found;
}

void finish_info(Info* found, const InfoOptions& options) {
  if (found->kind == FileKind::array) {
    found->shards = found->files.size();
    check_format(*found, options);
  }
  sum_cached(found);
}

}  // namespace

void add_files(Info* found, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const File file(path);
    FileInfo one{.path = path, .bytes = file.shard().size_bytes, .cached_bytes = {}};
    std::string why;
    if (const auto cached = residency(file, 0, 0, &why)) {
      one.cached_bytes = cached->cached_bytes;
    } else if (found->cached_unknown.empty()) {
      found->cached_unknown = why;
    }
    found->bytes += one.bytes;
    found->files.push_back(std::move(one));
  }
}

void sum_cached(Info* found) {
  std::uint64_t cached = 0;
  for (const FileInfo& file : found->files) cached += file.cached_bytes.value_or(0);
  if (found->cached_unknown.empty()) found->cached_bytes = cached;
}

const char* file_kind_word(FileKind kind) noexcept {
  constexpr const char* kWords[] = {"array", "tokens", "sparse"};
  return kWords[static_cast<std::size_t>(kind)];
}

std::string dtype_name(const DType& dtype) {
  if (!dtype.extension.empty()) return dtype.extension;
  const bool here = dtype.byte_order != '>';
  const bool numbers = std::string_view("iufc").find(dtype.kind) != std::string_view::npos;
  if (dtype.kind == 'b') return "bool";
  if (here && numbers) {
    constexpr std::string_view kLetters = "iufc";
    constexpr const char* kNames[] = {"int", "uint", "float", "complex"};
    return kNames[kLetters.find(dtype.kind)] + std::to_string(dtype.itemsize_bytes * 8);
  }
  std::string text = dtype.descr();
  if (text.starts_with('\'')) text = text.substr(1, text.size() - 2);
  return text;
}

FileKind kind_of(std::span<const std::string> paths, bool expand, const InfoOptions& options) {
  if (paths.empty()) throw std::invalid_argument("info: the list of files is empty");
  for (const std::string& path : paths) require_local(path, kExaminesLocal);
  const std::string& path = paths.front();
  const bool listed = has_list(path, expand);
  if (const auto asked = kind_asked(options, listed)) return *asked;
  if (listed) return FileKind::tokens;
  if (paths.size() == 1 && is_chunk_folder(path)) return FileKind::array;
  if (!expand) return kind_of_file(paths, options);
  const bool prefix = !path_exists(path) && std::ranges::any_of(paths_of_prefix(path), path_exists);
  if (prefix) return FileKind::tokens;
  if (is_folder(path)) return holds_arrays(path, options) ? FileKind::array : FileKind::tokens;
  return kind_of_file(expand_path(path), options);
}

Info info_of_opened(const OpenedFile& opened, const std::string& path, const InfoOptions& options) {
  Info found = std::visit([](const auto& open) { return info_of(open); }, opened);
  found.path = path;
  finish_info(&found, options);
  return found;
}

std::optional<Info> info_of_several(std::span<const std::string> paths, bool expand,
                                    const InfoOptions& options) {
  // A dtype means raw data here.
  if (options.key || options.dtype) return std::nullopt;
  if (kind_of(paths, expand, options) != FileKind::array) return std::nullopt;
  if (auto chunks = info_of_chunks(paths, options)) {
    return chunks->arrays.empty() ? std::nullopt : std::move(chunks);
  }
  const std::vector<std::string> files =
      expand ? array_paths(paths.front(), {}) : std::vector(paths.begin(), paths.end());
  const std::shared_ptr<File> first = first_file(files);
  if (first == nullptr || first->shard().size_bytes == 0) return std::nullopt;
  Info found;
  found.arrays = arrays_in(*first, &found.format);
  if (found.arrays.size() < 2) return std::nullopt;
  found.kind = FileKind::array;
  found.path = paths.front();
  add_files(&found, files);
  finish_info(&found, options);
  return found;
}

OpenedFile open_file(std::span<const std::string> paths, bool expand, const InfoOptions& options,
                     const ReadOptions& read) {
  if (kind_of(paths, expand, options) == FileKind::array) {
    const OpenOptions given{.dtype = options.dtype,
                            .shape = options.shape,
                            .offset_bytes = options.offset_bytes,
                            .fortran_order = options.fortran_order,
                            .key = options.key,
                            .read = read};
    return expand ? Array::open(paths.front(), given) : Array::open(paths, given);
  }
  const TokensOptions given{
      .dtype = options.dtype, .format = options.format, .key = options.key, .read = read};
  return expand ? Tokens::open(paths.front(), given) : Tokens::open(paths, given);
}

Info info(const std::string& path, const InfoOptions& options) {
  if (auto sparse = info_of_sparse({&path, 1}, options)) return *std::move(sparse);
  if (kind_of({&path, 1}, true, options) == FileKind::array) {
    if (auto chunks = info_of_chunks({&path, 1}, options))
      return checked(*std::move(chunks), options);
  }
  if (auto several = info_of_several({&path, 1}, true, options)) return *std::move(several);
  return info_of_opened(open_file({&path, 1}, true, options, kNoReads), path, options);
}

Info info(std::span<const std::string> paths, const InfoOptions& options) {
  if (auto sparse = info_of_sparse(paths, options)) return *std::move(sparse);
  if (kind_of(paths, false, options) == FileKind::array) {  // refuses an empty list
    if (auto chunks = info_of_chunks(paths, options)) return checked(*std::move(chunks), options);
  }
  if (auto several = info_of_several(paths, false, options)) return *std::move(several);
  const OpenedFile opened = open_file(paths, false, options, kNoReads);
  return info_of_opened(opened, paths.front(), options);
}

}  // namespace lowtide
