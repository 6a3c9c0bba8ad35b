// batch.h - one step of data: columns of bytes, and which samples they hold.
//
//   while (lowtide::Batch batch = batches.next()) use(batch.index(), batch.as<float>());
//
// Rows of one array make one column; rows of several arrays make one column per array. Windows of
// tokens make two columns, x and y; if documents are separated, positions and cu_seqlens follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>

namespace lowtide {

// A buffer leased from a pool. Copies are cheap and share the buffer. Its bytes stay valid and
// unchanged while any copy exists, even after the object that delivered it is gone; then the buffer
// is reused. You may write to the bytes. Copies may be used and destroyed on any thread.
class Batch {
 public:
  struct Buffer;  // internal

  // An empty batch, which is false: the end of the data.
  Batch() noexcept = default;
  Batch(const Batch& other) noexcept;
  Batch(Batch&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  Batch& operator=(Batch other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~Batch() {
    if (buffer_ != nullptr) release();
  }

  [[nodiscard]] explicit operator bool() const noexcept { return buffer_ != nullptr; }

  // The number of samples.
  [[nodiscard]] std::uint64_t rows() const noexcept;
  [[nodiscard]] std::size_t columns() const noexcept;
  // All bytes of a column, sample after sample. Throws std::out_of_range.
  [[nodiscard]] std::span<std::byte> column(std::size_t number) const;
  // The elements of a column, sample after sample. T is the arithmetic type of its elements, or a
  // class that is as large as one or several of them, such as a row. Throws std::invalid_argument
  // for any other type, and std::out_of_range.
  template <typename T>
  [[nodiscard]] std::span<T> as(std::size_t number = 0) const {
    static_assert(std::is_trivially_copyable_v<T>, "elements are bytes from a file");
    const std::span<std::byte> bytes = checked(number, kind_of<T>(), sizeof(T), alignof(T));
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  // The index of each sample: of its row or window, or in random order, of the first token of its
  // window. In a mixture, the index within its own source. Empty if the caller chose the samples
  // (Tokens::windows).
  [[nodiscard]] std::span<const std::uint64_t> index() const noexcept;
  // Which source of a mixture each sample comes from, counted from 0. Empty if there is only one
  // source.
  [[nodiscard]] std::span<const std::uint64_t> sources() const noexcept;
  // If samples differ in length: where each one starts, from 0, and where the last one ends; rows()
  // + 1 elements. Otherwise empty. If columns differ in their lengths, each has a table of its own,
  // in the order of the columns.
  [[nodiscard]] std::span<const std::uint64_t> offsets(std::size_t table = 0) const noexcept;
  // The step of this rank in its epoch, from 0.
  [[nodiscard]] std::uint64_t step() const noexcept;
  [[nodiscard]] std::uint64_t epoch() const noexcept;

 private:
  explicit Batch(Buffer* leased) noexcept : buffer_(leased) {}
  void release() noexcept;
  [[nodiscard]] std::span<std::byte> checked(std::size_t number, char kind, std::size_t size_bytes,
                                             std::size_t align_bytes) const;
  // As DType::kind; V for a class.
  template <typename T>
  static constexpr char kind_of() {
    if (std::is_same_v<std::remove_cv_t<T>, bool>) return 'b';
    if (std::is_floating_point_v<T>) return 'f';
    if (std::is_integral_v<T>) return std::is_signed_v<T> ? 'i' : 'u';
    return 'V';
  }

  Buffer* buffer_ = nullptr;
};

// Lets a range-for loop iterate over the batches of a Reader, up to the end of an epoch.
template <class Reader>
class BatchIterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;

  BatchIterator(Reader& reader, std::uint64_t epoch)
      : reader_(&reader), epoch_(epoch), batch_(reader.next_in(epoch)) {}

  [[nodiscard]] const Batch& operator*() const { return batch_; }
  BatchIterator& operator++() {
    batch_ = Batch();  // before the next one, whose buffer it may become
    batch_ = reader_->next_in(epoch_);
    return *this;
  }
  void operator++(int) { ++*this; }
  [[nodiscard]] bool operator==(std::default_sentinel_t /*end*/) const { return !batch_; }

 private:
  Reader* reader_;
  std::uint64_t epoch_;
  Batch batch_;
};

}  // namespace lowtide
