// files.h - reads files and objects piece by piece, so that you can find the chunks or stretches of
// an array yourself. Array::open_chunks and Array::open_stretches then open what you found.
//
//   lowtide::FileOpener opener;
//   lowtide::FileReader reader = opener.open("https://host/m.h5");
//   reader.read({{.offset_bytes = 0, .out = header}});
//   chunks.files = {reader.file()};
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/address.h"
#include "lowtide/chunks.h"

namespace lowtide {

class SourceFile;   // internal
class OpenerState;  // internal

// A range of a file: out.size() bytes.
struct FileRange {
  std::uint64_t offset_bytes = 0;
  std::span<std::byte> out = {};
};

// An open file, or one version of an object on a server: the version that was there when it was
// opened. Copies share it. Any thread.
class FileReader {
 public:
  explicit FileReader(std::shared_ptr<const SourceFile> source);

  // As it was when it was opened, for ArrayChunks::files and ArrayStretches::files.
  [[nodiscard]] const LocatedFile& file() const { return file_; }
  // Fills each range; the ranges of an object are requested at the same time. Throws FormatError if
  // the file ends before a range does, and IoError, also if the object has been replaced.
  void read(std::span<const FileRange> ranges) const;

 private:
  std::shared_ptr<const SourceFile> source_;
  LocatedFile file_;
};

// Opens files and objects, the latter over the same connections. One thread at a time.
class FileOpener {
 public:
  // As in OpenOptions.
  explicit FileOpener(const SignRequest& sign = nullptr, const ListObjects& list = nullptr);

  // A path or an address, never a pattern. Throws IoError.
  [[nodiscard]] FileReader open(const std::string& path);
  // The same, but returns nullopt if there is no such file or the server does not reveal whether
  // there is.
  [[nodiscard]] std::optional<FileReader> open_if_there(const std::string& path);
  // The names of the files in a folder; the address of a folder ends with '/'. Throws IoError, and
  // std::invalid_argument for a server that cannot list.
  [[nodiscard]] std::vector<std::string> names_in(const std::string& folder) const;

 private:
  std::shared_ptr<OpenerState> impl_;
};

// The address of `name` in the folder, or its path.
[[nodiscard]] std::string path_in(const std::string& folder, const std::string& name);

}  // namespace lowtide
