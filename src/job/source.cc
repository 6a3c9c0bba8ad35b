#include "job/source.h"

#include <cerrno>
#include <span>

#include "core/hash.h"
#include "face/tokens_impl.h"
#include "http/local_path.h"
#include "os/paths.h"
#include "token_format/token_names.h"

namespace lowtide {
namespace {

ReadOptions job_reading(std::uint64_t memory_bytes) {
  return {.memory_bytes = memory_bytes, .cache = CacheMode::drop};
}

Array open_values(const std::vector<std::string>& paths, OpenOptions options,
                  std::uint64_t memory_bytes) {
  options.read = job_reading(memory_bytes);
  return paths.size() == 1 ? Array::open(paths[0], options) : Array::open(paths, options);
}

void add_array(const OpenOptions& options, const std::string& prefix, Facts* facts) {
  facts->add(prefix + "dtype", options.dtype);
  if (options.shape) {
    facts->add(prefix + "axes", options.shape->size());
    for (const std::uint64_t entry : *options.shape) facts->add(prefix + "axis", entry);
  }
  facts->add(prefix + "offset", options.offset_bytes);
  if (options.fortran_order) facts->add(prefix + "fortran", *options.fortran_order ? 1 : 0);
  if (options.headerless) facts->add(prefix + "headerless", 1);
  facts->add(prefix + "key", options.key);
}

std::optional<std::string> text_of(const Facts& facts, const std::string& name) {
  const std::string* const value = facts.find(name);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

OpenOptions array_of(const Facts& facts, const std::string& prefix) {
  OpenOptions options;
  options.dtype = text_of(facts, prefix + "dtype");
  if (facts.find(prefix + "axes") != nullptr) {
    options.shape.emplace();
    for (const std::string& entry : facts.all(prefix + "axis")) {
      options.shape->push_back(parse_number(prefix + "axis", entry));
    }
  }
  options.offset_bytes = facts.find_number(prefix + "offset");
  if (const auto fortran = facts.find_number(prefix + "fortran"))
    options.fortran_order = *fortran != 0;
  options.headerless = facts.find(prefix + "headerless") != nullptr;
  options.key = text_of(facts, prefix + "key");
  return options;
}

}  // namespace

OpenSource open_source(const JobSource& source, std::uint64_t memory_bytes) {
  for (const std::string& path : given_paths(source)) require_local(path, kJobsReadLocal);
  OpenSource opened;
  if (source.tokens) {
    TokensOptions options = source.token_options;
    options.read = job_reading(memory_bytes);
    opened.tokens = source.paths.size() == 1 ? Tokens::open(source.paths[0], options)
                                             : Tokens::open(source.paths, options);
    return opened;
  }
  const std::uint64_t each = source.offsets.empty() ? memory_bytes : memory_bytes / 2;
  opened.array = open_values(source.paths, source.array, each);
  if (!source.offsets.empty())
    opened.offsets = open_values(source.offsets, source.offsets_array, each);
  return opened;
}

std::vector<std::string> OpenSource::files() const {
  std::vector<std::string> all;
  for (const std::optional<Array>& one : {array, offsets}) {
    if (!one) continue;
    for (std::string& path : one->paths()) all.push_back(std::move(path));
  }
  if (!tokens) return all;
  for (std::string& path : tokens->paths()) {
    const std::optional<std::string> index = index_beside(path);
    all.push_back(std::move(path));
    if (index && stamp_of(*index)) all.push_back(*index);
  }
  const std::vector<std::string>& lists = Tokens::Impl::of(*tokens)->lists;
  all.insert(all.end(), lists.begin(), lists.end());
  return all;
}

std::uint64_t OpenSource::stamp() const {
  std::uint64_t hash = 0;
  for (const std::string& path : files()) {
    const std::optional<PathStamp> stamp = stamp_of(path);
    if (!stamp) throw IoError(ENOENT, "open", path);
    hash = hash_with(hash, std::as_bytes(std::span(path)));
    hash = hash_with(hash, stamp->size_bytes);
    hash = hash_with(hash, static_cast<std::uint64_t>(stamp->mtime_ns));
  }
  for (const std::optional<Array>& one : {array, offsets}) {
    if (one) hash = hash_with(hash, one->fingerprint());
  }
  return tokens ? hash_with(hash, tokens->fingerprint()) : hash;
}

void check_same(const OpenSource& source, std::uint64_t stamp) {
  if (source.stamp() == stamp) return;
  const std::vector<std::string> files = source.files();
  throw IoError(ESTALE, "read", files.empty() ? "" : files.front(), std::nullopt,
                "the source has changed since the plan was made; plan again");
}

OpenSource open_same_source(const JobSource& source, std::uint64_t stamp,
                            std::uint64_t memory_bytes) {
  OpenSource opened = open_source(source, memory_bytes);
  check_same(opened, stamp);
  return opened;
}

void add_source(const JobSource& source, const std::string& prefix, Facts* facts) {
  facts->add(prefix + "kind", source.tokens ? "tokens" : "array");
  for (const std::string& path : source.paths) facts->add(prefix + "path", whole_path(path));
  if (source.tokens) {
    const TokensOptions& options = source.token_options;
    facts->add(prefix + "dtype", options.dtype);
    facts->add(prefix + "format", options.format);
    facts->add(prefix + "eot", options.eot);
    facts->add(prefix + "key", options.key);
    return;
  }
  add_array(source.array, prefix, facts);
  for (const std::string& path : source.offsets) {
    facts->add(prefix + "offsets.path", whole_path(path));
  }
  add_array(source.offsets_array, prefix + "offsets.", facts);
}

JobSource source_of(const Facts& facts, const std::string& prefix) {
  JobSource source;
  source.tokens = facts.at(prefix + "kind") == "tokens";
  source.paths = facts.all(prefix + "path");
  if (source.tokens) {
    source.token_options.dtype = text_of(facts, prefix + "dtype");
    source.token_options.format = text_of(facts, prefix + "format");
    source.token_options.eot = facts.find_number(prefix + "eot");
    source.token_options.key = text_of(facts, prefix + "key");
    return source;
  }
  source.array = array_of(facts, prefix);
  source.offsets = facts.all(prefix + "offsets.path");
  source.offsets_array = array_of(facts, prefix + "offsets.");
  return source;
}

std::vector<std::string> given_paths(const JobSource& source) {
  std::vector<std::string> paths = source.paths;
  paths.insert(paths.end(), source.offsets.begin(), source.offsets.end());
  return paths;
}

}  // namespace lowtide
