// source_columns.h - the columns of one source of a Loader, as they will be read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataset/columns.h"
#include "dataset/rows.h"
#include "face/csr_impl.h"
#include "face/store.h"
#include "lowtide/loader.h"

namespace lowtide {

[[nodiscard]] inline std::string count_text(std::uint64_t value) {
  return std::to_string(value);
}

struct SourceColumn {
  Columns::Part part;
  std::shared_ptr<const Rows> rows;   // its rows if they are all in one place
  std::string type;                   // what must be equal in all sources of a mixture
  std::shared_ptr<Csr::Impl> sparse;  // these are its values; the next column has its indices
};

// Visits the columns of one source. Their files are numbered in one list.
class SourceReader {
 public:
  explicit SourceReader(std::uint32_t first_shard) : shard_(first_shard) {}

  // Throw std::invalid_argument for data that is closed or that a Loader cannot read, FormatError
  // for wrong offsets.
  void operator()(const Array& array);
  void operator()(const RaggedArrays& ragged);
  void operator()(const TokenDocuments& source);
  void operator()(const Csr& csr);

  // Throws std::invalid_argument unless all columns have the same length.
  void check_lengths() const;
  [[nodiscard]] std::uint32_t next_shard() const { return shard_; }
  // That of a single array is the array's own. May read.
  [[nodiscard]] std::uint64_t fingerprint() const;

  std::vector<SourceColumn> columns;
  StoreHolder::Holders holders;     // of the columns
  std::uint64_t offsets_bytes = 0;  // that count towards the budget

 private:
  [[nodiscard]] std::shared_ptr<const Rows> numbered(const Array::Impl& impl) const;
  void add(SourceColumn column, const std::shared_ptr<StoreHolder>& holder);
  void add_ragged(std::shared_ptr<const Dataset> data, std::string type,
                  const std::shared_ptr<StoreHolder>& holder);

  std::uint32_t shard_;
  std::uint32_t table_ = 0;  // the next one; ragged data has one, whether or not others are equal
  std::vector<std::function<std::uint64_t()>> fingerprints_;
};

}  // namespace lowtide
