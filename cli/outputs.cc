#include "outputs.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace lowtide::cli {

void check_output(const std::string& output) {
  namespace fs = std::filesystem;
  const fs::path path(output);
  const std::string suffix = path.extension().string();
  const bool known = suffix == ".html" || suffix == ".svg" || suffix == ".json" ||
                     suffix == ".dat" || suffix == ".trace";
  if (!known) {
    throw std::invalid_argument(
        "-o " + output + ": expected a name that ends in .html, .svg, .json, .dat or .trace");
  }
  std::error_code unknown;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, unknown)) {
    throw std::invalid_argument("-o " + output + ": no such folder: " + folder.string());
  }
  if (fs::is_directory(path, unknown))
    throw std::invalid_argument("-o " + output + ": is a folder");
  const fs::path probe = folder / ("." + path.filename().string() + ".lowtide-check");
  std::ofstream file(probe, std::ios::binary);
  file << std::string(4096, ' ') << std::flush;
  const bool written = file.good();
  file.close();
  fs::remove(probe, unknown);
  if (!written) {
    throw std::invalid_argument("-o " + output + ": cannot write to the folder " + folder.string() +
                                " (no permission, or the disk is full)");
  }
}

}  // namespace lowtide::cli
