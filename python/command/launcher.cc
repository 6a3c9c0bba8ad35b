// The command `lowtide` of an installed Python package.
//
// The module lowtide._core contains the library, and the library is most of the command. A second
// copy of it would add 1.5 MB to every wheel, so the command is a function of the module, and this
// program loads the module and calls it. No Python is involved: the module's references to Python
// are weak (weaken.py) and stay null here, where nothing uses them.
#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Main = int (*)(int, char**);
using Path = std::array<char, 2 * PATH_MAX>;

constexpr const char* kModule = "lowtide/" LOWTIDE_MODULE;
constexpr const char* kEntry = LOWTIDE_ENTRY;

// The folder that contains bin/lowtide: an environment, a prefix or a home's .local.
bool find_prefix(Path* prefix) {
  const ssize_t length = ::readlink("/proc/self/exe", prefix->data(), PATH_MAX);
  if (length <= 0 || length == PATH_MAX) return false;
  (*prefix)[static_cast<std::size_t>(length)] = '\0';
  for (int up = 0; up < 2; ++up) {
    char* const slash = std::strrchr(prefix->data(), '/');
    if (slash == nullptr) return false;
    *slash = '\0';
  }
  return true;
}

// The command in <folder>/lowtide/_core.so; null if that file does not exist or is of another
// version. A module that exists but cannot be loaded is reported.
Main load(const char* folder) {
  Path path;
  const int length = std::snprintf(path.data(), path.size(), "%s/%s", folder, kModule);
  if (length < 0 || static_cast<std::size_t>(length) >= path.size()) return nullptr;
  if (::access(path.data(), F_OK) != 0) return nullptr;
  void* const module = ::dlopen(path.data(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    (void)std::fprintf(stderr, "lowtide: %s\n", ::dlerror());
    return nullptr;
  }
  return reinterpret_cast<Main>(::dlsym(module, kEntry));
}

// Looks into <lib>/python3*/site-packages and, as Debian calls it, dist-packages.
Main load_below(const char* prefix, const char* lib) {
  Path path;
  (void)std::snprintf(path.data(), path.size(), "%s/%s", prefix, lib);
  DIR* const folder = ::opendir(path.data());
  if (folder == nullptr) return nullptr;
  Main found = nullptr;
  while (const dirent* const entry = found == nullptr ? ::readdir(folder) : nullptr) {
    if (std::strncmp(entry->d_name, "python3", std::strlen("python3")) != 0) continue;
    for (const char* const packages : {"site-packages", "dist-packages"}) {
      (void)std::snprintf(path.data(), path.size(), "%s/%s/%s/%s", prefix, lib, entry->d_name,
                          packages);
      if (found == nullptr) found = load(path.data());
    }
  }
  (void)::closedir(folder);
  return found;
}

}  // namespace

int main(int count, char** words) {
  Path prefix;
  if (!find_prefix(&prefix)) {
    (void)std::fputs("lowtide: /proc/self/exe cannot be read: is /proc mounted?\n", stderr);
    return EXIT_FAILURE;
  }
  Main command = load_below(prefix.data(), "lib");
  if (command == nullptr) command = load_below(prefix.data(), "lib64");
  if (command == nullptr) command = load(prefix.data());  // pip install --target
  if (command == nullptr) {
    (void)std::fprintf(
        stderr,
        "lowtide: the Python package lowtide %s, which contains this command, was not "
        "found below %s. Reinstall it: pip install --force-reinstall lowtide\n",
        LOWTIDE_VERSION, prefix.data());
    return EXIT_FAILURE;
  }
  return command(count, words);
}
