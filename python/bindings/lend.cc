#include "lend.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  Batch batch;
};

constexpr const char* kUnclaimed = "dltensor";  // the consumer of the tensor renames the capsule

void forget(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kUnclaimed) == 0) return;
  auto* const managed = static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, kUnclaimed));
  managed->deleter(managed);
}

}  // namespace

std::optional<nb::dlpack::dtype> dlpack_type(std::string_view descr) {
  using Code = nb::dlpack::dtype_code;
  if (descr == "bfloat16") return nb::dlpack::dtype{static_cast<std::uint8_t>(Code::Bfloat), 16, 1};
  const DType type = DType::parse(descr);
  const auto of = [&](Code code) {
    const auto bits = static_cast<std::uint8_t>(type.itemsize_bytes * 8);
    return std::optional(nb::dlpack::dtype{static_cast<std::uint8_t>(code), bits, 1});
  };
  if (type.byte_order == '>' || type.itemsize_bytes > 16) return std::nullopt;
  switch (type.kind) {
    case 'b':
      return of(Code::Bool);
    case 'i':
      return of(Code::Int);
    case 'u':
      return of(Code::UInt);
    case 'f':
      return type.itemsize_bytes <= 8 ? of(Code::Float) : std::nullopt;
    case 'c':
      return of(Code::Complex);
    default:
      return std::nullopt;
  }
}

nb::dlpack::dtype token_type(std::string_view word) {
  return dlpack_type(word).value();  // the core has checked that it is an integer
}

nb::object lend_windows(Batch batch, nb::dlpack::dtype type) {
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

namespace {

// The shape of a column, whose first axis has as many rows as its bytes make.
std::vector<std::size_t> shape_of(std::span<const std::byte> bytes, const Lending& how,
                                  std::uint64_t rows) {
  std::size_t row_bytes = how.type->bits / 8;
  std::vector<std::size_t> shape{0};
  for (const std::size_t extent : how.row_shape) {
    row_bytes *= extent;
    shape.push_back(extent);
  }
  shape[0] = row_bytes == 0 ? rows : bytes.size() / row_bytes;
  return shape;
}

}  // namespace

nb::object lend_array(const Batch& batch, std::size_t column, const Lending& how,
                      const nb::object& lease) {
  const std::span<std::byte> bytes = batch.column(column);
  if (!how.type) {
    return nb::cast(
        nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(bytes.data(), {bytes.size()}, lease));
  }
  const std::vector<std::size_t> shape = shape_of(bytes, how, batch.rows());
  return nb::cast(
      nb::ndarray<nb::numpy>(bytes.data(), shape.size(), shape.data(), lease, nullptr, *how.type));
}

nb::object lend_tensor(const Batch& batch, std::size_t column, const Lending& how,
                       const nb::object& make) {
  const std::span<std::byte> bytes = batch.column(column);
  if (!how.type) throw nb::type_error("the elements of this column have no tensor type");
  const std::vector<std::size_t> shape = shape_of(bytes, how, batch.rows());
  auto lent = std::make_unique<LentTensor>(LentTensor{
      .managed = {}, .shape = {shape.begin(), shape.end()}, .strides = {}, .batch = batch});
  lent->strides.resize(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0; stride *= lent->shape[axis]) {
    lent->strides[axis] = stride;
  }
  lent->managed.tensor = {.data = bytes.data(),
                          .device = {nb::device::cpu::value, 0},
                          .ndim = static_cast<std::int32_t>(shape.size()),
                          .dtype = *how.type,
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

namespace {

nb::object new_numbers(std::span<const std::uint64_t> from) {
  auto numbers = std::make_unique_for_overwrite<std::int64_t[]>(from.size());
  std::ranges::copy(from, numbers.get());
  std::int64_t* const first = numbers.get();
  const nb::capsule owner(numbers.release(),
                          [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>(first, {from.size()}, owner));
}

}  // namespace

nb::object new_index(const Batch& batch) {
  return new_numbers(batch.index());
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
      .def(
          "sources",
          [](const Batch& batch) {
            return batch.sources().empty() ? nb::none() : new_numbers(batch.sources());
          },
          nb::sig("def sources(self) -> NDArray[numpy.int64] | None"))
      .def(
          "offsets",
          [](const Batch& batch, std::size_t table) { return new_numbers(batch.offsets(table)); },
          nb::arg("table"), nb::sig("def offsets(self, table: int) -> NDArray[numpy.int64]"))
      .def("positions", &positions, nb::sig("def positions(self) -> NDArray[numpy.int32] | None"))
      .def("cu_seqlens", &cu_seqlens,
           nb::sig("def cu_seqlens(self) -> NDArray[numpy.int32] | None"));
}

}  // namespace lowtide::python
