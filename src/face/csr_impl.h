// csr_impl.h - the implementation of an open sparse matrix, shared by its copies and its Loaders.
#pragma once

#include <cstdint>
#include <memory>

#include "dataset/stored_offsets.h"
#include "face/array_impl.h"
#include "face/store.h"
#include "lowtide/csr.h"

namespace lowtide {

class Csr::Impl {
 public:
  // Throws as Csr::open().
  Impl(const Array& data, const Array& indices, const Array& indptr, std::uint64_t columns);
  [[nodiscard]] static const std::shared_ptr<Impl>& of(const Csr& csr) { return csr.impl_; }

  [[nodiscard]] std::uint64_t fingerprint() const;

  const std::shared_ptr<Array::Impl> data, indices, indptr;
  const std::uint64_t columns;
  // Of the files of all three, in this order; it claims what the offsets hold.
  const std::shared_ptr<StoreHolder> holder;
  const std::shared_ptr<const StoredOffsets> offsets;
};

}  // namespace lowtide
