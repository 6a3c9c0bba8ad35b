// temp_folder.h - a folder of one test, removed with all that is in it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace lowtide {

class TempFolder {
 public:
  TempFolder() {
    static std::atomic<unsigned> count{0};
    path_ = testing::TempDir();
    if (!path_.ends_with('/')) path_ += '/';
    path_ += "lowtide_" + std::to_string(::getpid()) + "_" + std::to_string(count++);
    std::filesystem::create_directories(path_);
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
    std::ofstream(path, std::ios::binary) << text;
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
