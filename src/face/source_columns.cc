#include "face/source_columns.h"

#include <algorithm>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/hash.h"
#include "dataset/ragged.h"
#include "face/array_impl.h"
#include "face/tokens_impl.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

void check_open(StoreHolder& holder) {
  if (holder.closed()) (void)holder.store();  // throws
}

std::string type_of(const Rows& rows) {
  std::vector<std::uint64_t> row(rows.shape().begin() + 1, rows.shape().end());
  return rows.dtype().descr() + " rows of shape " + shape_text(row);
}

}  // namespace

void SourceReader::operator()(const Array& array) {
  const auto& impl = Array::Impl::of(array);
  auto rows = numbered(*impl);
  SourceColumn column;
  column.part.data = rows;
  column.type = type_of(*rows);
  column.rows = std::move(rows);
  add(std::move(column), impl->holder);
  fingerprints_.emplace_back([impl] { return impl->fingerprint(); });
}

void SourceReader::operator()(const RaggedArrays& ragged) {
  if (ragged.values.empty()) throw std::invalid_argument("ragged data needs an array of values");
  const auto offsets = std::make_shared<const ListedOffsets>(ragged.offsets);
  for (const Array& array : ragged.values) {
    const auto& impl = Array::Impl::of(array);
    const auto rows = numbered(*impl);
    if (rows->fortran_order() && rows->parts() > 1) {
      throw std::invalid_argument("ragged values must be in C order, but " + rows->path(shard_) +
                                  " is in Fortran order");
    }
    check_offsets(ragged.offsets, rows->size());
    const auto data = std::make_shared<const Ragged>(rows, offsets);
    add_ragged(data, "ragged " + type_of(*rows), impl->holder);
    fingerprints_.emplace_back([impl] { return impl->fingerprint(); });
  }
  ++table_;
  if (ragged.claim_offsets) offsets_bytes += ragged.offsets.size_bytes();
  fingerprints_.emplace_back(
      [table = ragged.offsets] { return hash_with(0, std::as_bytes(table)); });
}

void SourceReader::operator()(const TokenDocuments& source) {
  const auto& impl = Tokens::Impl::of(source.tokens);
  check_open(*impl->holder);
  const auto documents = impl->documents();
  if (!documents) {
    throw std::invalid_argument("documents: " + impl->stream->format() +
                                " files do not record where documents start");
  }
  const auto data = std::make_shared<const Ragged>(impl->stream, documents, shard_);
  add_ragged(data, "ragged " + impl->stream->dtype().descr(), impl->holder);
  ++table_;
  fingerprints_.emplace_back([impl] { return hash_with(1, impl->fingerprint()); });
}

void SourceReader::operator()(const Csr& csr) {
  const auto& impl = Csr::Impl::of(csr);
  check_open(*impl->holder);
  const std::string type = "sparse rows of " + count_text(impl->columns) + " columns, ";
  for (const auto& array : {impl->data, impl->indices}) {
    const auto rows = numbered(*array);
    const auto data = std::make_shared<const Ragged>(rows, impl->offsets);
    add_ragged(data, type + rows->dtype().descr(), array->holder);
  }
  columns.end()[-2].sparse = impl;
  columns.back().part.below = impl->columns;
  ++table_;
  fingerprints_.emplace_back([impl] { return impl->fingerprint(); });
}

void SourceReader::check_lengths() const {
  for (std::size_t i = 1; i < columns.size(); ++i) {
    const std::uint64_t first = columns[0].part.data->size(), here = columns[i].part.data->size();
    if (first == here) continue;
    throw std::invalid_argument("columns must have the same length, but column 0 has " +
                                count_text(first) + " rows and column " + count_text(i) + " has " +
                                count_text(here));
  }
}

std::uint64_t SourceReader::fingerprint() const {
  if (fingerprints_.size() == 1) return fingerprints_[0]();
  std::uint64_t hash = fingerprints_.size();
  for (const auto& one : fingerprints_) hash = hash_with(hash, one());
  return hash;
}

std::shared_ptr<const Rows> SourceReader::numbered(const Array::Impl& impl) const {
  check_open(*impl.holder);
  if (impl.rows->shape().empty()) {
    throw std::invalid_argument(impl.rows->path(0) + " is a 0-d array: it has no rows");
  }
  return std::make_shared<const Rows>(impl.rows->from_shard(shard_));
}

void SourceReader::add(SourceColumn column, const std::shared_ptr<StoreHolder>& holder) {
  column.part.first_shard = shard_;
  shard_ += static_cast<std::uint32_t>(holder->shards->size());
  columns.push_back(std::move(column));
  holders.push_back(holder);
}

void SourceReader::add_ragged(std::shared_ptr<const Dataset> data, std::string type,
                              const std::shared_ptr<StoreHolder>& holder) {
  SourceColumn column;
  column.part.data = std::move(data);
  column.part.table = table_;
  column.type = std::move(type);
  add(std::move(column), holder);
}

void check_offsets(std::span<const std::int64_t> offsets, std::uint64_t values) {
  if (offsets.empty()) throw FormatError("offsets: the list is empty; it must begin with 0");
  if (offsets[0] != 0) {
    throw FormatError("offsets: entry 0 is " + std::to_string(offsets[0]) + ", but must be 0");
  }
  const auto falls = std::ranges::adjacent_find(offsets, std::ranges::greater());
  if (falls != offsets.end()) {
    const auto at = static_cast<std::uint64_t>(falls - offsets.begin());
    throw FormatError("offsets: entry " + count_text(at + 1) + " is " + std::to_string(falls[1]) +
                      ", less than entry " + count_text(at) + ", which is " +
                      std::to_string(falls[0]));
  }
  if (static_cast<std::uint64_t>(offsets.back()) > values) {
    throw FormatError("offsets: entry " + count_text(offsets.size() - 1) + " is " +
                      std::to_string(offsets.back()) + ", but there are only " +
                      count_text(values) + " values");
  }
}

}  // namespace lowtide
