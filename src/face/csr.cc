#include "lowtide/csr.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/hash.h"
#include "core/token_type.h"
#include "dataset/ragged.h"
#include "dataset/sparse.h"
#include "face/csr_impl.h"
#include "face/row_list.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kOffsetsShare = 4;  // offsets may take up to 1/4 of the budget

const Rows& checked_axis(const Array::Impl& array, const char* name) {
  const Rows& rows = *array.rows;
  if (rows.shape().size() != 1) {
    throw std::invalid_argument(rows.path(0) + ": " + name +
                                " must have one axis, but its shape is " +
                                shape_text(rows.shape()));
  }
  return rows;
}

const Rows& checked_integers(const Array::Impl& array, const char* name) {
  const Rows& rows = checked_axis(array, name);
  if (token_type(rows.dtype())) return rows;
  throw std::invalid_argument(rows.path(0) + ": " + name +
                              " must be little-endian integers, but the dtype is " +
                              rows.dtype().descr());
}

void check_arrays(const Csr::Impl& csr) {
  const std::uint64_t values = checked_axis(*csr.data, "data").size();
  const Rows& indices = checked_integers(*csr.indices, "indices");
  if (indices.size() != values) {
    throw FormatError(indices.path(0) + ": indices has " + std::to_string(indices.size()) +
                      " entries, but data has " + std::to_string(values));
  }
  const Rows& indptr = checked_integers(*csr.indptr, "indptr");
  if (indptr.size() == 0) {
    throw FormatError(indptr.path(0) + ": indptr is empty; it must begin with 0");
  }
  if (csr.columns == 0 && values > 0) {
    throw FormatError(csr.data->rows->path(0) + ": the matrix has no columns, but data has " +
                      std::to_string(values) + " values");
  }
}

// Whether the offsets are to stay in memory.
bool holds_offsets(const Csr::Impl& csr) {
  const std::uint64_t limit = csr.data->holder->store()->budget().limit_bytes();
  return StoredOffsets::table_bytes(csr.indptr->rows->size() - 1) <= limit / kOffsetsShare;
}

std::shared_ptr<StoreHolder> make_holder(const Csr::Impl& csr) {
  check_arrays(csr);
  const auto shards = std::make_shared<Shards>();
  for (const auto& array : {csr.data, csr.indices, csr.indptr}) {
    for (std::size_t i = 0; i < array->holder->shards->size(); ++i) {
      shards->add((*array->holder->shards)[i]);
    }
  }
  Budget::Entry held{"where rows start", shards->held_bytes()};
  if (holds_offsets(csr)) held.bytes += StoredOffsets::table_bytes(csr.indptr->rows->size() - 1);
  return std::make_shared<StoreHolder>("the sparse matrix", shards, csr.data->holder->options,
                                       Budget::Entry{"one value", 8}, std::move(held),
                                       csr.data->holder);
}

std::uint32_t shards_of(const Array::Impl& array) {
  return static_cast<std::uint32_t>(array.rows->shards()->size());
}

std::shared_ptr<const StoredOffsets> read_offsets(const Csr::Impl& csr) {
  const std::uint32_t first_shard = shards_of(*csr.data) + shards_of(*csr.indices);
  return std::make_shared<const StoredOffsets>(
      std::make_shared<const Rows>(csr.indptr->rows->from_shard(first_shard)),
      [holder = csr.holder](std::span<const Read> reads) { holder->store_of_run()->read(reads); },
      csr.data->rows->size(), holds_offsets(csr));
}

}  // namespace

Csr::Impl::Impl(const Array& of_data, const Array& of_indices, const Array& of_indptr,
                std::uint64_t of_columns)
    : data(Array::Impl::of(of_data)),
      indices(Array::Impl::of(of_indices)),
      indptr(Array::Impl::of(of_indptr)),
      columns(of_columns),
      holder(make_holder(*this)),
      offsets(read_offsets(*this)) {}

std::uint64_t Csr::Impl::fingerprint() const {
  std::uint64_t hash = hash_with(3, columns);
  for (const auto& array : {data, indices, indptr}) hash = hash_with(hash, array->fingerprint());
  return hash;
}

Csr::Csr(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Csr Csr::open(const Array& data, const Array& indices, const Array& indptr, std::uint64_t columns) {
  return Csr(std::make_shared<Impl>(data, indices, indptr, columns));
}

std::uint64_t Csr::rows() const {
  return impl_->offsets->size();
}
std::uint64_t Csr::columns() const {
  return impl_->columns;
}
std::uint64_t Csr::values() const {
  return impl_->offsets->end();
}
const DType& Csr::dtype() const {
  return impl_->data->rows->dtype();
}
const DType& Csr::index_dtype() const {
  return impl_->indices->rows->dtype();
}
std::uint64_t Csr::memory_bytes() const {
  return impl_->holder->options.memory_bytes;
}

void Csr::offsets(RowList list, std::span<std::int64_t> out) const {
  (void)impl_->holder->store();  // throws if it is closed
  if (out.size() != length(list) + 1) {
    throw std::invalid_argument("offsets: out has " + std::to_string(out.size()) +
                                " entries, but must have " + std::to_string(length(list) + 1) +
                                ", one more than rows");
  }
  out[0] = 0;
  std::vector<std::uint64_t> starts(kTakeRows), ends(kTakeRows);
  for_pieces(list, rows(), [&](std::size_t first, std::vector<std::uint64_t>& samples) {
    impl_->offsets->bounds(samples, starts, ends);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto count = static_cast<std::int64_t>(ends[i] - starts[i]);
      out[first + i + 1] = out[first + i] + count;
    }
  });
}

void Csr::take(RowList list, std::span<std::byte> data, std::span<std::byte> indices) const {
  const std::shared_ptr<Store> store = impl_->holder->store();
  const Rows& values = *impl_->data->rows;
  const Rows columns = impl_->indices->rows->from_shard(shards_of(*impl_->data));
  const std::uint64_t data_bytes = values.sample_bytes(), index_bytes = columns.sample_bytes();
  const TokenType type = *token_type(columns.dtype());
  std::vector<std::uint64_t> starts(kTakeRows), ends(kTakeRows);
  std::vector<Read> reads;
  std::uint64_t done = 0;  // values
  for_pieces(list, rows(), [&](std::size_t /*first*/, std::vector<std::uint64_t>& samples) {
    impl_->offsets->bounds(samples, starts, ends);
    reads.clear();
    const std::uint64_t before = done;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::uint64_t count = ends[i] - starts[i];
      if (count > data.size() / std::max<std::uint64_t>(1, data_bytes) - done ||
          count > indices.size() / index_bytes - done) {
        throw std::invalid_argument("take: data or indices has no room for the values of row " +
                                    std::to_string(samples[i]) +
                                    "; make both as long as offsets() reports");
      }
      values.locate_run(starts[i], count, data.data() + done * data_bytes, reads);
      columns.locate_run(starts[i], count, indices.data() + done * index_bytes, reads);
      done += count;
    }
    store->read(reads);
    const std::byte* const read = indices.data() + before * index_bytes;
    const std::size_t wrong = first_not_below(type, read, done - before, impl_->columns);
    if (wrong == done - before) return;
    std::size_t row = 0;
    for (std::uint64_t end = ends[0] - starts[0]; end <= wrong; end += ends[row] - starts[row])
      ++row;
    throw_wrong_index(columns.path(shards_of(*impl_->data)), samples[row], type, read, wrong,
                      impl_->columns);
  });
}

std::uint64_t Csr::fingerprint() const {
  return impl_->fingerprint();
}
Stats Csr::stats() const {
  return impl_->holder->store()->stats();
}
void Csr::close() {
  impl_->holder->close();
}
bool Csr::closed() const {
  return impl_->holder->closed();
}

}  // namespace lowtide
