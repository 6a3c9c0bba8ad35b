#include "lend.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace lowtide::python {
namespace {

// DLManagedTensor of DLPack before 1.0, which every version of torch accepts.
struct ManagedTensor {
  nb::dlpack::dltensor tensor;
  void* context;
  void (*deleter)(ManagedTensor*);
};

// A tensor that holds its batch. Any thread may release it at any time, without the interpreter.
struct LentTensor {
  ManagedTensor managed;
  std::array<std::int64_t, 2> shape;
  std::array<std::int64_t, 2> strides;
  Batch batch;
};

constexpr const char* kUnclaimed = "dltensor";  // the consumer of the tensor renames the capsule

void forget(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kUnclaimed) == 0) return;
  auto* const managed = static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, kUnclaimed));
  managed->deleter(managed);
}

}  // namespace

nb::dlpack::dtype token_type(std::string_view word) {
  const DType type = DType::parse(word);  // the core has checked that it is an integer
  const auto code = type.kind == 'i' ? nb::dlpack::dtype_code::Int : nb::dlpack::dtype_code::UInt;
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(type.itemsize_bytes * 8), 1};
}

nb::object lend_arrays(Batch batch, nb::dlpack::dtype type) {
  const std::span<std::byte> x = batch.column(kX);
  const std::size_t item_bytes = type.bits / 8;
  const std::size_t block = x.size() / item_bytes / batch.rows();
  const std::ptrdiff_t apart_bytes = batch.column(kY).data() - x.data();
  // One array for both, because making a second array costs more than slicing one.
  const std::size_t shape[] = {2, batch.rows(), block};
  const std::int64_t strides[] = {apart_bytes / static_cast<std::int64_t>(item_bytes),
                                  static_cast<std::int64_t>(block), 1};
  const nb::object lease = nb::cast(std::move(batch), nb::rv_policy::move);
  const nb::object both =
      nb::cast(nb::ndarray<nb::numpy>(x.data(), 3, shape, lease, strides, type));
  return nb::make_tuple(both[0], both[1], lease);
}

nb::object lend_tensor(const Batch& batch, std::size_t column, nb::dlpack::dtype type,
                       const nb::object& make) {
  const std::span<std::byte> tokens = batch.column(column);
  const auto rows = static_cast<std::int64_t>(batch.rows());
  const auto block = static_cast<std::int64_t>(tokens.size() / (type.bits / 8)) / rows;
  auto lent = std::make_unique<LentTensor>(
      LentTensor{.managed = {}, .shape = {rows, block}, .strides = {block, 1}, .batch = batch});
  lent->managed.tensor = {.data = tokens.data(),
                          .device = {nb::device::cpu::value, 0},
                          .ndim = 2,
                          .dtype = type,
                          .shape = lent->shape.data(),
                          .strides = lent->strides.data()};
  lent->managed.context = lent.get();
  lent->managed.deleter = [](ManagedTensor* managed) {
    delete static_cast<LentTensor*>(managed->context);
  };
  PyObject* const capsule = PyCapsule_New(&lent->managed, kUnclaimed, &forget);
  if (capsule == nullptr) throw nb::python_error();
  (void)lent.release();
  return make(nb::steal(capsule));
}

nb::object new_index(const Batch& batch) {
  const std::span<const std::uint64_t> index = batch.index();
  auto numbers = std::make_unique_for_overwrite<std::int64_t[]>(index.size());
  std::ranges::copy(index, numbers.get());
  std::int64_t* const first = numbers.get();
  const nb::capsule owner(numbers.release(),
                          [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>(first, {index.size()}, owner));
}

namespace {

// Views into a batch; each one holds it.
using Places = nb::ndarray<nb::numpy, std::int32_t>;

nb::object positions(const nb::handle_t<Batch>& lease) {
  const Batch& batch = nb::cast<const Batch&>(lease);
  if (batch.columns() <= kPositions) return nb::none();
  const auto all = batch.as<std::int32_t>(kPositions);
  return nb::cast(Places(all.data(), {batch.rows(), all.size() / batch.rows()}, lease));
}

nb::object cu_seqlens(const nb::handle_t<Batch>& lease) {
  const Batch& batch = nb::cast<const Batch&>(lease);
  if (batch.columns() <= kCuSeqlens) return nb::none();
  const auto all = batch.as<std::int32_t>(kCuSeqlens);
  return nb::cast(Places(all.data(), {all.size()}, lease));
}

}  // namespace

void bind_batch(nb::module_& module) {
  nb::class_<Batch>(module, "Batch")
      .def_prop_ro("step", &Batch::step)
      .def_prop_ro("epoch", &Batch::epoch)
      .def("index", &new_index, nb::sig("def index(self) -> NDArray[numpy.int64]"))
      .def("positions", &positions, nb::sig("def positions(self) -> NDArray[numpy.int32] | None"))
      .def("cu_seqlens", &cu_seqlens,
           nb::sig("def cu_seqlens(self) -> NDArray[numpy.int32] | None"));
}

}  // namespace lowtide::python
