// temp_folder.h - a folder of one test, removed with all that is in it.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace lowtide {

class TempFolder {
 public:
  TempFolder() {
    path_ = testing::TempDir();
    if (!path_.ends_with('/')) path_ += '/';
    path_ += "lowtide_XXXXXX";  // nobody else's, not even one that a crash left behind
    // Others may look into it: some tests are another user for a while.
    if (::mkdtemp(path_.data()) == nullptr || ::chmod(path_.c_str(), 0755) != 0) {
      throw std::system_error(errno, std::generic_category(), "a folder for a test: " + path_);
    }
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // Makes the folders above it too.
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = *this / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw std::runtime_error("a test cannot write " + path.string() + ": is there room?");
    return path;
  }

 private:
  std::string path_;
};

// Bytes of which each tells its place, so that one in the wrong place is seen.
inline std::string pattern(std::size_t size_bytes, std::uint64_t seed = 1) {
  std::string text(size_bytes, '\0');
  std::uint64_t state = seed;
  for (char& c : text) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    c = static_cast<char>(state >> 56);
  }
  return text;
}

inline std::string to_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace lowtide
