#include "system/program.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>

#include "lowtide/error.h"
#include "os/file.h"

namespace lowtide {

namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#else
constexpr std::uint16_t kMachine = EM_NONE;
#endif

bool is_program(const std::string& path) {
  struct stat file {};
  return ::stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

// The loader ignores LD_PRELOAD if the program gets rights that its caller lacks.
std::string rights_obstacle(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return "";
  if ((file.st_mode & S_ISUID) != 0 && file.st_uid != ::getuid()) return "is set-user-id";
  const bool in_group = file.st_gid == ::getgid();
  if ((file.st_mode & S_ISGID) != 0 && (file.st_mode & S_IXGRP) != 0 && !in_group) {
    return "is set-group-id";
  }
  if (::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0) {
    return "has file capabilities";
  }
  return "";
}

// Reads all of `out` at `offset_bytes`, or fails.
bool read_part(const File& file, std::uint64_t offset_bytes, std::span<std::byte> out) {
  if (offset_bytes > file.shard().size_bytes || out.size() > file.shard().size_bytes - offset_bytes)
    return false;
  file.read_exact(offset_bytes, out);
  return true;
}

std::string elf_obstacle(const File& file) {
  Elf64_Ehdr header{};
  if (!read_part(file, 0, std::as_writable_bytes(std::span(&header, 1)))) return "";
  if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
      (kMachine != EM_NONE && header.e_machine != kMachine)) {
    return "is built for another architecture than lowtide";
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return "";
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    const std::uint64_t at = header.e_phoff + i * sizeof part;
    if (!read_part(file, at, std::as_writable_bytes(std::span(&part, 1)))) return "";
    if (part.p_type == PT_INTERP) return "";
  }
  return "is statically linked";
}

// "#!/usr/bin/env python" -> "/usr/bin/env"
std::string interpreter_of(std::string_view first_bytes) {
  const std::size_t start = first_bytes.find_first_not_of(" \t", 2);
  if (start == std::string_view::npos) return "";
  const std::size_t end = first_bytes.find_first_of(" \t\n", start);
  if (end == std::string_view::npos) return "";
  return std::string(first_bytes.substr(start, end - start));
}

std::string obstacle(const std::string& path, int scripts) {
  constexpr int kMostScripts = 4;  // the kernel's own limit
  if (std::string why = rights_obstacle(path); !why.empty() || scripts > kMostScripts) return why;
  const File file(path);
  std::array<char, 256> first{};
  const std::size_t size = std::min<std::uint64_t>(first.size(), file.shard().size_bytes);
  file.read_exact(0, std::as_writable_bytes(std::span(first.data(), size)));
  const std::string_view text(first.data(), size);
  if (text.starts_with("#!")) {
    const std::string interpreter = interpreter_of(text);
    if (interpreter.empty()) return "";
    const std::string why = obstacle(interpreter, scripts + 1);
    return why.empty() ? "" : "is run by " + interpreter + ", which " + why;
  }
  return text.starts_with(ELFMAG) ? elf_obstacle(file) : "";
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  const char* const path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "/bin:/usr/bin" : path;
  while (true) {
    const std::size_t end = folders.find(':');
    const std::string folder(folders.substr(0, end));
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (is_program(candidate)) return candidate;
    if (end == std::string_view::npos) return "";
    folders.remove_prefix(end + 1);
  }
}

std::string preload_obstacle(const std::string& path) {
  try {
    return obstacle(path, 0);
  } catch (const IoError&) {
    return "";  // executable but not readable: trying it will show
  } catch (const FormatError&) {
    return "";
  }
}

std::string executable_path() {
  std::error_code failed;
  return std::filesystem::read_symlink("/proc/self/exe", failed).string();
}

}  // namespace lowtide
