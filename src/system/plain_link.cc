#include "system/plain_link.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <stdexcept>

#include "core/hash.h"
#include "lowtide/error.h"

namespace lowtide {

namespace {

namespace fs = std::filesystem;

// Whether only this user and root can change what the name refers to.
bool ours_alone(const std::string& path) {
  struct stat told {};
  return ::lstat(path.c_str(), &told) == 0 && S_ISDIR(told.st_mode) &&
         (told.st_uid == ::geteuid() || told.st_uid == 0) &&
         (told.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool safe(const fs::path& folder) {
  fs::path so_far;
  for (const fs::path& part : folder) {
    so_far /= part;
    if (!ours_alone(so_far.string())) return false;
  }
  return true;
}

// Empty if the variable does not name a safe folder.
std::string link_folder(const char* variable, const char* below, std::string_view unwanted) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value != '/') return "";
  const std::string wanted = std::string(value) + below;
  if (*below != 0) (void)::mkdir(wanted.c_str(), S_IRWXU);
  std::error_code failed;
  fs::path folder = fs::canonical(wanted, failed);
  if (failed || folder.string().find_first_of(unwanted) != std::string::npos) return "";
  if (!safe(folder)) return "";
  folder /= "lowtide";
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST) return "";
  return ours_alone(folder.string()) ? folder.string() : "";
}

std::string link_name(const std::string& target) {
  std::array<char, 40> name{};
  (void)std::snprintf(name.data(), name.size(), "/guard-%016llx.so",
                      static_cast<unsigned long long>(
                          hash_with(0, std::as_bytes(std::span(target.data(), target.size())))));
  return name.data();
}

bool leads_to(const std::string& link, const std::string& target) {
  std::error_code failed;
  return fs::read_symlink(link, failed) == fs::path(target) && !failed;
}

// Created under a temporary name and renamed, because another guard may be using the link.
void make_link(const std::string& target, const std::string& link) {
  const std::string fresh = link + "." + std::to_string(::getpid());
  (void)::unlink(fresh.c_str());
  if (::symlink(target.c_str(), fresh.c_str()) != 0) throw IoError(errno, "symlink", fresh);
  if (::rename(fresh.c_str(), link.c_str()) == 0) return;
  const int err = errno;
  (void)::unlink(fresh.c_str());
  throw IoError(err, "rename", link);
}

}  // namespace

std::string plain_link(const std::string& target, std::string_view unwanted) {
  for (const auto& [variable, below] :
       {std::pair{"XDG_RUNTIME_DIR", ""}, {"XDG_CACHE_HOME", ""}, {"HOME", "/.cache"}}) {
    const std::string folder = link_folder(variable, below, unwanted);
    if (folder.empty()) continue;
    const std::string link = folder + link_name(target);
    if (!leads_to(link, target)) make_link(target, link);
    return link;
  }
  throw std::runtime_error(
      target +
      ": the path of a preloaded library must not contain spaces, colons or dollar signs, and "
      "there is no folder for a link to it that only you can write to; set XDG_RUNTIME_DIR to such "
      "a "
      "folder, or install lowtide under another path");
}

}  // namespace lowtide
