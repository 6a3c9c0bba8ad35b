#include <algorithm>
#include <cerrno>
#include <optional>
#include <stdexcept>
#include <utility>

#include "face/tokens_impl.h"
#include "format/descr.h"
#include "http/address.h"
#include "http/listing.h"
#include "lowtide/error.h"
#include "opener/listed_objects.h"
#include "opener/source_file.h"
#include "os/paths.h"
#include "system/limits.h"
#include "token_format/token_list.h"
#include "token_format/token_names.h"

namespace lowtide {
namespace {

std::vector<std::string> token_objects(const std::string& address, const ListedObjects& listed) {
  if (!is_listed(address)) return {address};
  if (!address.ends_with('/')) return without_indexes(listed.matches(address));
  return token_files_in(address.substr(0, address.size() - 1), listed.names_in(address));
}

std::vector<std::string> expand(const std::string& path, const TokensOptions& options) {
  if (is_address(path)) return token_objects(path, {options.sign, options.list});
  if (is_folder(path)) return token_files_in(path, list_folder(path));
  if (!path_exists(path)) {
    for (std::string& named : paths_of_prefix(path)) {
      if (path_exists(named)) return {std::move(named)};
    }
  }
  return without_indexes(expand_path(path));
}

std::optional<std::string> object_of_prefix(const std::string& prefix,
                                            const TokensOptions& options) {
  SourceOpener opener(options.sign);
  for (const std::string& named : paths_of_prefix(prefix)) {
    if (opener.open_if_there(named) != nullptr) return named;
  }
  return std::nullopt;
}

// An empty file that has an index was truncated; it must not be skipped as an empty shard.
bool is_empty_shard(SourceOpener& opener, const Shard& shard) {
  if (shard.size_bytes != 0) return false;
  const std::optional<std::string> index = index_beside(shard.path);
  return !index || opener.open_if_there(*index) == nullptr;
}

constexpr std::uint64_t kSmallTableBytes = 4096;  // of one file, which is not worth a claim

// The bytes held that grow with the number of files and what is in them, with the name of the claim
// if it is not that of a table of files.
Budget::Entry held_by(const TokenStream& stream, const std::vector<TokenLayout>& layouts,
                      const std::vector<Shard>& index_shards) {
  std::uint64_t bytes = stream.held_bytes();
  for (const TokenLayout& layout : layouts) {
    bytes += sizeof(layout) + layout.data_path.size() + layout.documents->path.size() +
             layout.extents.capacity() * sizeof(TokenExtent);
  }
  for (const Shard& shard : index_shards) bytes += sizeof(shard) + shard.path.size();
  const bool large = bytes > kSmallTableBytes * stream.shards()->size();
  return {large ? "where the documents are" : "", bytes};
}

// In the address of a server, a name must not become a query.
std::string path_in(const std::string& folder, const std::string& name) {
  const std::string scheme = parse_scheme(folder);
  return folder + (scheme == "http" || scheme == "https" ? percent_encoded(name, "/") : name);
}

constexpr std::uint64_t kMostRecordBytes = 256 << 20;  // of one file, whatever the budget

// Opens one file after the other.
class TokenOpener {
 public:
  explicit TokenOpener(const TokensOptions& options)
      : opener_(options.sign),
        most_bytes_(options.read.memory_bytes != 0 ? options.read.memory_bytes
                                                   : default_memory_bytes(SystemRoot{})) {}

  void add(const std::string& path, const TokenGiven& given, bool skip_empty) {
    const std::shared_ptr<SourceFile> file = opener_.open(path);
    if (skip_empty && is_empty_shard(opener_, file->shard())) return;
    add(file, given, nullptr, nullptr);
  }

  // All files that an index.json lists.
  void add_list(const std::string& path, const TokenGiven& given) {
    const TokenFileList list = read_token_list(token_file(opener_.open(path)), given);
    const TokenGiven each = given_by(list, given);
    const std::string folder = path.substr(0, path.size() - kTokenListName.size());
    for (const ListedFile& listed : list.files) {
      std::shared_ptr<SourceFile> file;
      try {
        file = opener_.open(path_in(folder, listed.name));
      } catch (const IoError& error) {
        // Whoever unpacks keeps both, or only the one that is wanted here.
        if (error.err != ENOENT || listed.packed_name.empty()) throw;
        if (opener_.open_if_there(path_in(folder, listed.packed_name)) == nullptr) throw;
        refuse_packed(list, listed);
      }
      add(file, each, &list, &listed);
    }
    lists.push_back(is_address(path) ? list.path : whole_path(path));
  }

  std::shared_ptr<TokenStream> stream = std::make_shared<TokenStream>();
  std::vector<TokenLayout> layouts;  // of those with documents
  std::vector<Shard> index_shards;
  std::vector<std::string> lists;
  std::shared_ptr<SourceFile> last;

 private:
  void add(const std::shared_ptr<SourceFile>& file, TokenGiven given, const TokenFileList* list,
           const ListedFile* listed) {
    const OpenBeside beside = [&](const std::string& path) -> std::optional<TokenFile> {
      const std::shared_ptr<SourceFile> other = opener_.open_if_there(path);
      return other != nullptr ? std::optional(token_file(other)) : std::nullopt;
    };
    const TokenFile named = token_file(file);
    given.most_record_bytes =
        std::min(kMostRecordBytes, most_bytes_ - std::min(most_bytes_, record_bytes_));
    if (list != nullptr) check_listed_size(*list, *listed, named);
    TokenLayout layout = open_token_layout(named, beside, given);
    if (list != nullptr) check_listed(*list, *listed, layout);
    if (layout.records) record_bytes_ += layout.records->held_bytes();
    last = layout.data_path == named.path ? file : opener_.open(layout.data_path);
    stream->add(layout, last->shard());
    if (!layout.documents) return;
    const bool same = layout.documents->path == named.path;
    index_shards.push_back(same ? file->shard() : opener_.open(layout.documents->path)->shard());
    layouts.push_back(std::move(layout));
  }

  SourceOpener opener_;
  const std::uint64_t most_bytes_;
  std::uint64_t record_bytes_ = 0;
};

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
  try {
    return Tokens(Impl::open(expand(path, options), options));
  } catch (const IoError& error) {
    // Like a path, an address may be the prefix of a data file and its index.
    if (error.err != ENOENT || !is_address(path) || is_listed(path)) throw;
    const std::optional<std::string> named = object_of_prefix(path, options);
    if (!named) throw;
    return Tokens(Impl::open({*named}, options));
  }
}

Tokens Tokens::open(std::span<const std::string> paths, const TokensOptions& options) {
  return Tokens(Impl::open(without_indexes({paths.begin(), paths.end()}), options));
}

std::shared_ptr<Tokens::Impl> Tokens::Impl::open(const std::vector<std::string>& paths,
                                                 const TokensOptions& options) {
  if (paths.empty()) throw std::invalid_argument("tokens: the list of files is empty");
  TokenGiven given;
  if (options.dtype) given.dtype = parse_descr(*options.dtype);
  given.format = options.format;
  given.key = options.key;
  TokenOpener opener(options);
  for (const std::string& path : paths) {
    if (is_token_list(path)) {
      opener.add_list(path, given);
    } else {
      opener.add(path, given, /*skip_empty=*/paths.size() > 1);
    }
  }
  if (opener.stream->shards()->size() == 0) {
    throw FormatError(shown_address(paths[0]) + ": expected data, found none in any of the " +
                      std::to_string(paths.size()) + " files");
  }
  const auto shard = static_cast<std::uint32_t>(opener.stream->shards()->size() - 1);
  const std::shared_ptr<File> last = opener.last->local();
  auto impl = std::make_shared<Impl>(std::move(opener.stream), std::move(opener.layouts),
                                     std::move(opener.index_shards), std::move(opener.lists),
                                     options.eot, options.read);
  if (last != nullptr) impl->holder->store()->files().adopt(shard, last);
  return impl;
}

Tokens::Impl::Impl(std::shared_ptr<const TokenStream> of, std::vector<TokenLayout> with_documents,
                   std::vector<Shard> index_shards, std::vector<std::string> lists_of,
                   std::optional<std::uint64_t> eot_of, const ReadOptions& options)
    : stream(std::move(of)),
      layouts(std::move(with_documents)),
      lists(std::move(lists_of)),
      eot(eot_of),
      holder(std::make_shared<StoreHolder>("the token stream", stream->shards(), options,
                                           Budget::Entry{"one token", stream->item_bytes()},
                                           held_by(*stream, layouts, index_shards))),
      index_shards_(std::make_shared<const Shards>(index_shards)) {}

}  // namespace lowtide
