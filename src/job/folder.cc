#include "job/folder.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "core/hash.h"
#include "lowtide/error.h"
#include "os/write_file.h"
#include "writer/published_file.h"

namespace lowtide {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestJobName = 200;  // so that the whole name stays below 255 bytes

bool is_part_name(std::string_view name) {
  return name.starts_with("part-") && name.find("-of-") != std::string_view::npos;
}

// Whether a folder contains nothing but what a job makes; else the name of something else.
std::optional<std::string> stranger_in(const std::string& folder) {
  for (const std::string& name : list_folder(folder)) {
    const std::string stem = name.substr(0, name.find('.'));
    const std::string inside = folder + "/" + name;
    const std::optional<PathStamp> there = stamp_of(inside);
    if (there && there->folder) {
      if (name != "values" && name != "offsets") return name;
      if (const auto stranger = stranger_in(inside)) return name + "/" + *stranger;
    } else if (!is_part_name(name) && stem != "values" && stem != "offsets") {
      return name;
    }
  }
  return std::nullopt;
}

// What tasks were writing that another process has done as well, or that were killed. A writer that
// lives finds its file gone and publishes nothing.
void remove_unfinished(const std::string& folder) {
  for (const std::string& name : list_folder(folder)) {
    const std::string inside = folder + "/" + name;
    if (const auto there = stamp_of(inside); there && there->folder) {
      remove_unfinished(inside);
    } else if (PublishedFile::is_hidden(name)) {
      if (const int err = remove_file(inside); err != 0) throw IoError(err, "remove", inside);
    }
  }
}

void check_kind(const Destination& destination, const PathStamp& there) {
  if (there.folder && !destination.folder) {
    throw IoError(EISDIR, "create", destination.path, std::nullopt,
                  "the result is a file; name one inside that folder");
  }
  if (!there.folder && destination.folder) {
    throw IoError(ENOTDIR, "create", destination.path, std::nullopt,
                  "the result is a folder; choose another name");
  }
}

void check_replaceable(const Destination& destination, const PathStamp& there) {
  check_kind(destination, there);
  if (!there.folder) return;
  if (const auto stranger = stranger_in(destination.path)) {
    throw IoError(
        ENOTEMPTY, "replace", destination.path, std::nullopt,
        "it contains " + *stranger + ", which is not the result of a job; remove it yourself");
  }
}

}  // namespace

void refuse_existing(const std::string& path) {
  throw IoError(EEXIST, "create", path, std::nullopt, "set overwrite to replace it");
}

Destination Destination::plan(const std::string& path, bool folder, bool overwrite,
                              const std::vector<std::string>& files) {
  if (path.empty()) throw std::invalid_argument("the destination is empty; name the result");
  if (path.find('\0') != std::string::npos) {
    throw std::invalid_argument("the destination contains a NUL byte after \"" +
                                path.substr(0, path.find('\0')) + "\"");
  }
  std::string name = path;
  while (folder && name.size() > 1 && name.ends_with('/')) name.pop_back();
  Destination made{.path = whole_path(name), .folder = folder, .overwrite = overwrite};
  const std::string target = PublishedFile::target_path(made.path);
  for (const std::string& file : files) {
    const std::string source = PublishedFile::target_path(file);
    if (source == target || source.starts_with(target + "/")) {
      throw IoError(EINVAL, "create", path, std::nullopt,
                    "it is the source, or a part of it; choose another name");
    }
  }
  const std::optional<PathStamp> there = stamp_of(made.path);
  if (there) check_kind(made, *there);
  if (there && overwrite) check_replaceable(made, *there);
  if (overwrite) made.before = there;
  // Found out by trying, and nothing is left of it.
  const std::string trial = PublishedFile::hidden_path(target) + "-try";
  (void)remove_file(trial);
  try {
    (void)WriteFile::create(trial, made.path);
  } catch (const IoError& error) {
    if (error.err != EEXIST) throw;  // somebody else tries the same
  }
  (void)remove_file(trial);
  return made;
}

void Destination::add_to(Facts* facts) const {
  facts->add("destination", path);
  facts->add("destination.folder", folder ? 1 : 0);
}

void Destination::add_before_to(Facts* facts) const {
  facts->add("destination.overwrite", overwrite ? 1 : 0);
  if (!before) return;
  facts->add("before.folder", before->folder ? 1 : 0);
  facts->add("before.size", before->size_bytes);
  facts->add("before.mtime", static_cast<std::uint64_t>(before->mtime_ns));
  facts->add("before.inode", before->inode);
}

Destination Destination::of(const Facts& facts) {
  Destination made{.path = facts.at("destination"),
                   .folder = facts.number("destination.folder") != 0,
                   .overwrite = facts.number("destination.overwrite") != 0};
  if (facts.find("before.inode") != nullptr) {
    made.before = PathStamp{.folder = facts.number("before.folder") != 0,
                            .size_bytes = facts.number("before.size"),
                            .mtime_ns = static_cast<std::int64_t>(facts.number("before.mtime")),
                            .inode = facts.number("before.inode")};
  }
  return made;
}

bool Destination::changed() const {
  const std::optional<PathStamp> now = stamp_of(path);
  return now && now != before;
}

void Destination::check_free() const {
  const std::optional<PathStamp> now = stamp_of(path);
  if (!now) return;
  if (!overwrite) refuse_existing(path);
  check_replaceable(*this, *now);
}

JobFolder::JobFolder(Destination destination, std::uint64_t hash)
    : destination_(std::move(destination)), hash_(hash) {
  const fs::path target = PublishedFile::target_path(destination_.path);
  const std::string name = target.filename();
  path_ = target.parent_path() /
          ("." + (name.size() > kLongestJobName ? "" : name) + ".lowtide-job-" + hex_text(hash));
}

void JobFolder::make(const std::vector<std::string>& inside) const {
  make_folder(path_);
  for (const std::string& name : inside) make_folder(path_ + "/" + name);
}

void JobFolder::publish() const {
  destination_.check_free();
  const std::string target = PublishedFile::target_path(destination_.path);
  // Whoever gets the result under a name of its own publishes it. Only that one exchanges names:
  // done twice, it would bring the old folder back.
  const std::optional<PathStamp> whole = stamp_of(result());
  if (!whole) throw IoError(ENOENT, "rename", result());
  sync_folder_of(result() + "/part", destination_.path);  // it may have folders of parts
  const std::string mine =
      path_ + "/whole-" + std::to_string(whole->inode) + "-" + std::to_string(now_ns());
  if (const int err = move_file(result(), mine); err != 0) throw IoError(err, "rename", result());
  remove_unfinished(mine);  // not before: under the old name, a task could begin another one
  const bool replaces = stamp_of(target).has_value();
  const int err = replaces ? exchange_names(mine, target) : move_new(mine, target);
  if (err == EINVAL && replaces) {
    throw IoError(
        err, "replace", destination_.path, std::nullopt,
        "this file system cannot exchange two folders atomically; remove the old one first");
  }
  if (err != 0) throw IoError(err, "rename", destination_.path);
  sync_folder_of(target, destination_.path);
}

void JobFolder::remove() const {
  remove_folder(path_);
}

}  // namespace lowtide
