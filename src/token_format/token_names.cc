#include "token_format/token_names.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "lowtide/error.h"
#include "token_format/token_list.h"
#include "token_format/token_source.h"

namespace lowtide {
namespace {

// A name that is nothing but a suffix is a hidden file, not a data file.
bool ends_in(std::string_view text, std::string_view suffix) {
  return text.size() > suffix.size() && text.ends_with(suffix);
}

std::string with_suffix(const std::string& path, std::string_view old_suffix,
                        std::string_view new_suffix) {
  return path.substr(0, path.size() - old_suffix.size()) + std::string(new_suffix);
}

// Each suffix once, in the order of the formats.
std::vector<std::string_view> all_suffixes() {
  std::vector<std::string_view> all;
  for (const TokenFormat* const format : token_formats()) {
    if (std::ranges::find(all, format->suffix) == all.end()) all.push_back(format->suffix);
  }
  return all;
}

std::string joined(const std::vector<std::string_view>& words, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? last : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace

std::vector<std::string> token_files_in(const std::string& folder,
                                        const std::vector<std::string>& names) {
  // First, because other files may be beside those that it lists.
  if (std::ranges::find(names, kTokenListName) != names.end()) {
    return {folder + "/" + std::string(kTokenListName)};
  }
  std::vector<std::string> files;
  std::vector<std::string_view> found;
  for (const std::string_view suffix : all_suffixes()) {
    for (const std::string& name : names) {
      if (!ends_in(name, suffix)) continue;
      files.push_back(folder + "/" + name);
      if (found.empty() || found.back() != suffix) found.push_back(suffix);
    }
  }
  // Joined, they would form one stream that nobody meant.
  if (found.size() > 1) {
    throw FormatError(folder + ": this folder contains both " + joined(found, " and ") +
                      " files; name the files of one format, for example \"" + folder + "/*" +
                      std::string(found.front()) + "\"");
  }
  if (files.empty()) {
    throw FormatError(folder + ": this folder contains no token files (" +
                      joined(all_suffixes(), " or ") + ")");
  }
  return files;
}

std::vector<std::string> without_indexes(const std::vector<std::string>& paths) {
  const std::unordered_set<std::string> all(paths.begin(), paths.end());
  const auto folder_of = [](std::string_view path) { return path.substr(0, path.rfind('/') + 1); };
  const auto is_beside_its_data = [&](const std::string& path) {
    if (is_token_list(path)) {
      return std::ranges::any_of(paths, [&](const std::string& other) {
        return other != path && folder_of(other) == folder_of(path);
      });
    }
    return std::ranges::any_of(token_formats(), [&](const TokenFormat* format) {
      return !format->index_suffix.empty() && ends_in(path, format->index_suffix) &&
             all.contains(with_suffix(path, format->index_suffix, format->suffix));
    });
  };
  std::vector<std::string> kept;
  std::ranges::remove_copy_if(paths, std::back_inserter(kept), is_beside_its_data);
  return kept;
}

std::vector<std::string> paths_of_prefix(const std::string& prefix) {
  std::vector<std::string> paths;
  for (const TokenFormat* const format : token_formats()) {
    if (!format->index_suffix.empty()) paths.push_back(prefix + std::string(format->index_suffix));
  }
  return paths;
}

std::optional<std::string> index_beside(const std::string& path) {
  for (const TokenFormat* const format : token_formats()) {
    if (format->index_suffix.empty() || !ends_in(path, format->suffix)) continue;
    return with_suffix(path, format->suffix, format->index_suffix);
  }
  return std::nullopt;
}

}  // namespace lowtide
