#include "outputs.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "terminal.h"

namespace lowtide::cli {
namespace {

namespace fs = std::filesystem;

// Tries it with a new file ("x" refuses an existing name, even a link), because access(2) does not
// notice a full disk or a quota.
bool can_write(const fs::path& folder) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const fs::path probe = folder / (".lowtide-check-" + std::to_string(i));
    std::FILE* const file = std::fopen(probe.c_str(), "wbx");
    if (file == nullptr && errno == EEXIST) continue;
    if (file == nullptr) return false;
    const std::string block(4096, ' ');
    const bool put = std::fwrite(block.data(), 1, block.size(), file) == block.size();
    const bool closed = std::fclose(file) == 0;
    std::error_code ignored;
    fs::remove(probe, ignored);
    return put && closed;
  }
  return false;
}

}  // namespace

void check_output(const std::string& output, const std::vector<std::string>& suffixes) {
  const fs::path path(output);
  if (std::ranges::find(suffixes, path.extension().string()) == suffixes.end()) {
    throw std::invalid_argument("-o " + output + ": expected a name that ends in " +
                                either(suffixes));
  }
  std::error_code unknown;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, unknown)) {
    throw std::invalid_argument("-o " + output + ": no such folder: " + folder.string());
  }
  if (fs::is_directory(path, unknown))
    throw std::invalid_argument("-o " + output + ": is a folder; give the name of a file");
  if (!can_write(folder)) {
    throw std::invalid_argument("-o " + output + ": cannot write to the folder " + folder.string() +
                                " (no permission, or the disk is full)");
  }
}

}  // namespace lowtide::cli
