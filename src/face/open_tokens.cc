#include <algorithm>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "face/tokens_impl.h"
#include "format/descr.h"
#include "lowtide/error.h"
#include "os/limits.h"
#include "os/paths.h"

namespace lowtide {
namespace {

bool ends_in(const std::string& text, std::string_view suffix) {
  return text.size() > suffix.size() && text.ends_with(suffix);
}

std::string with_suffix(const std::string& path, std::string_view suffix) {
  return path.substr(0, path.size() - suffix.size()) + std::string(suffix);
}

// All files of one known format in a folder, sorted by bytes.
std::vector<std::string> files_in(const std::string& folder) {
  const std::vector<std::string> names = list_folder(folder);
  std::vector<std::string> bins, arrays;
  for (const std::string& name : names) {
    if (name == "index.json") {
      throw FormatError(folder +
                        "/index.json: this folder is in MDS or LitData format, which Lowtide does "
                        "not read; name the token files themselves");
    }
    if (ends_in(name, ".bin")) bins.push_back(folder + "/" + name);
    if (ends_in(name, ".npy")) arrays.push_back(folder + "/" + name);
  }
  if (!bins.empty() && !arrays.empty()) {
    throw FormatError(folder +
                      ": this folder contains both .bin and .npy files; name the files of one "
                      "format, for example \"" +
                      folder + "/*.bin\"");
  }
  if (bins.empty() && arrays.empty()) {
    throw FormatError(folder + ": this folder contains no token files (.bin or .npy)");
  }
  return bins.empty() ? arrays : bins;
}

// A pattern that matches both files of a Megatron pair names it twice; this keeps one.
std::vector<std::string> without_twins(const std::vector<std::string>& paths) {
  const std::unordered_set<std::string> all(paths.begin(), paths.end());
  std::vector<std::string> kept;
  for (const std::string& path : paths) {
    const bool twin = ends_in(path, ".idx") && all.contains(with_suffix(path, ".bin"));
    if (!twin) kept.push_back(path);
  }
  return kept;
}

std::vector<std::string> expand(const std::string& path) {
  if (is_folder(path)) return files_in(path);
  if (!path_exists(path) && path_exists(path + ".idx")) return {path + ".idx"};
  return without_twins(expand_path(path));
}

// The bytes held that grow with the number of files.
std::uint64_t held_bytes(const TokenStream& stream, const std::vector<TokenLayout>& layouts,
                         const std::vector<Shard>& index_shards) {
  std::uint64_t bytes = stream.held_bytes();
  for (const TokenLayout& layout : layouts) {
    bytes += sizeof(layout) + layout.data_path.size() + layout.documents->path.size() +
             layout.runs.capacity() * sizeof(TokenRun);
  }
  for (const Shard& shard : index_shards) bytes += sizeof(shard) + shard.path.size();
  return bytes;
}

}  // namespace

TokenFile token_file(const std::shared_ptr<File>& file) {
  return {
      file->shard().path, file->shard().size_bytes,
      [file](std::uint64_t offset, std::span<std::byte> out) { file->read_exact(offset, out); }};
}

std::optional<TokenFile> open_beside(const std::string& path) {
  if (!path_exists(path)) return std::nullopt;
  return token_file(std::make_shared<File>(path));
}

Tokens Tokens::open(const std::string& path, const TokensOptions& options) {
  return Tokens(Impl::open(expand(path), options));
}

Tokens Tokens::open(std::span<const std::string> paths, const TokensOptions& options) {
  return Tokens(Impl::open(without_twins({paths.begin(), paths.end()}), options));
}

std::shared_ptr<Tokens::Impl> Tokens::Impl::open(const std::vector<std::string>& paths,
                                                 const TokensOptions& options) {
  if (paths.empty()) throw std::invalid_argument("tokens: the list of files is empty");
  TokenGiven given;
  if (options.dtype) given.dtype = parse_descr(*options.dtype);
  given.format = options.format;
  const auto stream = std::make_shared<TokenStream>();
  std::vector<TokenLayout> layouts;
  std::vector<Shard> index_shards;
  std::shared_ptr<File> last;
  for (const std::string& path : paths) {
    const auto file = std::make_shared<File>(path);
    // An empty file that has an index was truncated; it must not be skipped as an empty shard.
    const bool empty = file->shard().size_bytes == 0;
    const bool indexed = ends_in(path, ".bin") && path_exists(with_suffix(path, ".idx"));
    if (paths.size() > 1 && empty && !indexed) continue;
    TokenLayout layout = open_token_layout(token_file(file), open_beside, given);
    const bool same = layout.data_path == path;
    last = same ? file : std::make_shared<File>(layout.data_path);
    Shard shard = last->shard();
    shard.path = whole_path(shard.path);
    stream->add(layout, shard);
    if (!layout.documents) continue;
    index_shards.push_back(layout.documents->path == path ? file->shard()
                                                          : File(layout.documents->path).shard());
    index_shards.back().path = whole_path(index_shards.back().path);
    layouts.push_back(std::move(layout));
  }
  if (stream->shards()->size() == 0) {
    throw FormatError("all " + std::to_string(paths.size()) + " files are empty");
  }
  const auto shard = static_cast<std::uint32_t>(stream->shards()->size() - 1);
  auto impl =
      std::make_shared<Impl>(stream, std::move(layouts), std::move(index_shards), options.eot,
                             StoreOptions{options.memory_bytes, options.engine, options.cache,
                                          options.past_cache, options.gap_bytes});
  impl->holder->store()->files().adopt(shard, std::move(last));
  return impl;
}

Tokens::Impl::Impl(std::shared_ptr<const TokenStream> of, std::vector<TokenLayout> with_documents,
                   std::vector<Shard> index_shards, std::optional<std::uint64_t> eot_of,
                   const StoreOptions& options)
    : stream(std::move(of)),
      layouts(std::move(with_documents)),
      eot(eot_of),
      holder(std::make_shared<StoreHolder>("the token stream", stream->shards(), options,
                                           Budget::Entry{"one token", stream->item_bytes()},
                                           held_bytes(*stream, layouts, index_shards))),
      index_shards_(std::make_shared<const Shards>(index_shards)) {}

}  // namespace lowtide
