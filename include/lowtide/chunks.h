// chunks.h - an array in chunks whose locations in its files are already known, for example from a
// library that reads HDF5. Array::open_chunks takes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lowtide {

struct Remote;  // internal

// A file as it was when its chunks were looked up. Make it before you look them up: if the file is
// changed afterwards, opening the array fails instead of reading the wrong bytes.
struct LocatedFile {
  std::string path;
  std::uint64_t size_bytes = 0;
  std::uint64_t version = 0;
  std::shared_ptr<const Remote> remote = nullptr;  // how an object is requested (files.h)

  // Opens a local file and closes it again. Throws IoError.
  [[nodiscard]] static LocatedFile of(const std::string& path);
};

// All chunks have the same shape and hold their elements in C order, uncompressed. Chunks at the
// edges of the array are stored whole, as in HDF5 and zarr. The chunks form a grid and are listed
// in its C order. A contiguous array is one chunk.
struct ArrayChunks {
  static constexpr std::uint64_t kAbsent = UINT64_MAX;

  std::string format = {};                // what Array::format() returns: "hdf5"
  std::string dtype = {};                 // NumPy's descr: "<f4", "[('x', '<f4')]"
  std::vector<std::uint64_t> shape = {};  // empty: 0-d
  // As many axes as `shape`, all longer than 0.
  std::vector<std::uint64_t> chunk_shape = {};
  std::vector<LocatedFile> files = {};  // at least one
  // Where each chunk is. kAbsent: it was never written, and all of it is the fill value.
  std::vector<std::uint64_t> offsets_bytes = {};
  // The file of each chunk, as an index into `files`. Empty: all are in the first one.
  std::vector<std::uint32_t> file_numbers = {};
  std::vector<std::byte> fill = {};  // the bytes of one element; empty: zeros
  std::string path = {};             // what Array::paths() returns; empty: the files
};

// An array whose rows are stored in several places, such as the record batches of an Arrow file.
struct ArrayStretches {
  std::string format = {};
  std::string dtype = {};                     // as in ArrayChunks
  std::vector<std::uint64_t> row_shape = {};  // without the first axis
  std::vector<LocatedFile> files = {};
  // For each stretch, in the order of the rows: its file, as an index into `files` that never
  // decreases; where it starts; and how many rows it contains.
  std::vector<std::uint32_t> file_numbers = {};
  std::vector<std::uint64_t> offsets_bytes = {};
  std::vector<std::uint64_t> rows = {};
};

}  // namespace lowtide
