// reader.h - what the C++ blocks of the docs find around them: a folder with small files of the
// names that the pages use, and somebody to hand batches to.
#pragma once

#include <lowtide/array.h>
#include <lowtide/loader.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

inline void use(std::span<const std::uint64_t> rows, std::span<const float> values) {
  if (rows.empty() || values.empty()) throw std::runtime_error("an empty batch");
}

inline void train(std::span<const std::int64_t> x, std::span<const std::int64_t> y) {
  if (x.empty() || y.size() != x.size()) throw std::runtime_error("an empty batch");
}

inline void train(std::span<const float> x, std::span<const std::int64_t> y) {
  if (y.empty() || x.size() != y.size() * 162) throw std::runtime_error("an empty batch");
}

// The current folder, with m.npy (10,000 x 162 float32), labels.npy (10,000 int64) and train.bin
// (200,000 uint16), until the program ends.
struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "docs_blocks_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder: " + name);
    path = name;
    std::filesystem::current_path(path);
    write_npy("m.npy", "'<f4'", "(10000, 162)", std::vector<float>(10'000 * 162, 0.5F));
    write_npy("labels.npy", "'<i8'", "(10000,)", std::vector<std::int64_t>(10'000, 3));
    std::ofstream tokens("train.bin", std::ios::binary);
    for (int i = 0; i < 200'000; ++i) {
      tokens.put(static_cast<char>(i % 251)).put(static_cast<char>(i % 7));
    }
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  template <typename T>
  static void write_npy(const char* name, const std::string& descr, const std::string& shape,
                        const std::vector<T>& values) {
    std::string header = "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}";
    header.resize(117, ' ');
    header += '\n';
    std::ofstream array(name, std::ios::binary);
    array << "\x93NUMPY" << '\1' << '\0' << static_cast<char>(header.size()) << '\0' << header;
    array.write(reinterpret_cast<const char*>(values.data()),
                static_cast<std::streamsize>(values.size() * sizeof(T)));
  }

  std::filesystem::path path;
};

// Whether the block failed; then it is named on stderr.
inline bool run_block(const char* place, int (*run)()) {
  try {
    if (run() == 0) return false;
    std::cerr << place << ": exit code is not 0\n";
  } catch (const std::exception& error) {
    std::cerr << place << ": " << error.what() << "\n";
  }
  return true;
}
