// array_impl.h - the implementation of an open array, shared by its copies and their Batches.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataset/rows.h"
#include "face/store.h"
#include "lowtide/array.h"

namespace lowtide {

// A folder stands for the arrays in it, anything else for what expand_path makes of it; likewise
// for addresses, whose objects are listed.
[[nodiscard]] std::vector<std::string> array_paths(const std::string& path,
                                                   const OpenOptions& options);

class Array::Impl {
 public:
  // Reads the headers. Throws IoError, FormatError, std::invalid_argument.
  [[nodiscard]] static std::shared_ptr<Impl> open(std::vector<std::string> paths,
                                                  const OpenOptions& options);
  // The same for chunks that somebody else has located.
  [[nodiscard]] static std::shared_ptr<Impl> open(ArrayStretches stretches,
                                                  const ReadOptions& options);
  [[nodiscard]] static std::shared_ptr<Impl> open(ArrayChunks chunks, const ReadOptions& options);
  [[nodiscard]] static std::shared_ptr<Impl> open(LocatedArray found, const ReadOptions& options);
  // `shared`: another array holds the table of chunks.
  Impl(std::shared_ptr<const Rows> rows, std::string format, const ReadOptions& options,
       std::string path = "", bool shared = false);
  [[nodiscard]] static const std::shared_ptr<Impl>& of(const Array& array) { return array.impl_; }

  const std::shared_ptr<const Rows> rows;
  const std::string format;
  const std::string path;  // of all files together, if there is one
  const std::shared_ptr<StoreHolder> holder;

  // As Array::fingerprint. Any thread.
  [[nodiscard]] std::uint64_t fingerprint();

 private:
  std::atomic<std::uint64_t> fingerprint_{0};  // 0: not computed yet
};

}  // namespace lowtide
