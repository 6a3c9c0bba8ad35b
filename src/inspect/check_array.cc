#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "core/crc32.h"
#include "core/quote.h"
#include "face/array_impl.h"
#include "format/registry.h"
#include "inspect/check.h"
#include "inspect/info.h"
#include "lowtide/error.h"
#include "os/file.h"

namespace lowtide {
namespace {

// The bits of an IEEE number: if the exponent is all ones, the number is infinite, or NaN if the
// fraction is not zero.
template <typename Word>
struct FloatBits {
  Word exponent, fraction;
};
constexpr FloatBits<std::uint16_t> kHalf{0x7c00, 0x03ff};
constexpr FloatBits<std::uint32_t> kSingle{0x7f800000, 0x007fffff};
constexpr FloatBits<std::uint64_t> kDouble{0x7ff0000000000000, 0x000fffffffffffff};

template <typename Word>
Word byte_swapped(Word word) {
  if constexpr (sizeof(Word) == 2) {
    return __builtin_bswap16(word);
  } else if constexpr (sizeof(Word) == 4) {
    return __builtin_bswap32(word);
  } else {
    return __builtin_bswap64(word);
  }
}

struct Tally {
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
};

template <typename Word>
void count_words(std::span<const std::byte> bytes, FloatBits<Word> bits, bool swap, Tally* tally) {
  for (std::size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof(Word));
    if (swap) word = byte_swapped(word);
    const bool odd = (word & bits.exponent) == bits.exponent;
    const bool is_nan = odd && (word & bits.fraction) != 0;
    tally->nan += is_nan ? 1 : 0;
    tally->infinite += odd && !is_nan ? 1 : 0;
  }
}

std::uint64_t part_bytes(const DType& dtype) {
  return dtype.kind == 'c' ? dtype.itemsize_bytes / 2 : dtype.itemsize_bytes;
}

bool can_count(const DType& dtype) {
  const std::uint64_t bytes = part_bytes(dtype);
  return (dtype.kind == 'f' || dtype.kind == 'c') && (bytes == 2 || bytes == 4 || bytes == 8);
}

void count_odd(std::span<const std::byte> bytes, const DType& dtype, Tally* tally) {
  const bool swap = dtype.byte_order == '>' && std::endian::native == std::endian::little;
  switch (part_bytes(dtype)) {
    case 2:
      return count_words(bytes, kHalf, swap, tally);
    case 4:
      return count_words(bytes, kSingle, swap, tally);
    default:
      return count_words(bytes, kDouble, swap, tally);
  }
}

void check_truth(std::span<const std::byte> bytes, std::uint64_t first, const std::string& path) {
  const auto* const wrong = std::find_if(bytes.data(), bytes.data() + bytes.size(),
                                         [](std::byte b) { return b > std::byte{1}; });
  if (wrong == bytes.data() + bytes.size()) return;
  throw FormatError(path + ": element " +
                    std::to_string(first + static_cast<std::uint64_t>(wrong - bytes.data())) +
                    ": expected 0 or 1 for dtype bool, found " +
                    std::to_string(std::to_integer<int>(*wrong)));
}

void check_values(std::span<const std::byte> bytes, std::uint64_t first, const Array& of,
                  const CheckOptions& options, Tally* tally) {
  if (of.dtype().kind == 'b') check_truth(bytes, first, of.paths().front());
  if (options.count_nan) count_odd(bytes, of.dtype(), tally);
}

// One file of the array on its own.
Array open_alone(const std::string& path, bool alone, const CheckOptions& options,
                 const std::string& format) {
  OpenOptions given{.read = kNoReads};
  given.read.cache = CacheMode::drop;
  if (!has_header(format)) {
    given.dtype = options.file.dtype;
    given.offset_bytes = options.file.offset_bytes;
    if (alone) given.shape = options.file.shape;
  }
  given.key = options.file.key;
  // Passed as a list, so that a star in a file name is not a pattern.
  return Array::open({&path, 1}, given);
}

// How much of all is done, over all files and arrays.
struct Account {
  const CheckOptions& options;
  std::uint64_t all_bytes;
  CheckResult* result;
  Tally tally = {};

  void advance(std::uint64_t bytes) {
    result->read_bytes += bytes;
    if (options.progress) options.progress(result->read_bytes, all_bytes);
  }
  void report() const {
    if (!options.count_nan) return;
    result->nan = tally.nan;
    result->infinite = tally.infinite;
  }
};

// Compares the checksum of a file with its bytes, which are passed in their order.
class Summing {
 public:
  Summing(const Array& array, const Checksum& expected)
      : path_(array.paths().front()), expected_(expected) {
    read_to(Array::Impl::of(array)->rows->first_offset_bytes());
  }

  void add(std::span<const std::byte> bytes) {
    sum_ = crc32(sum_, bytes);
    at_bytes_ += bytes.size();
  }

  void finish() {
    read_to(expected_.offset_bytes + expected_.size_bytes);
    if (sum_ == expected_.crc32) return;
    throw FormatError(path_ + ": bytes " + std::to_string(expected_.offset_bytes) + " to " +
                      std::to_string(at_bytes_) + ": expected CRC-32 " +
                      std::to_string(expected_.crc32) + ", as the file says, found " +
                      std::to_string(sum_));
  }

 private:
  // What is before the elements and after them.
  void read_to(std::uint64_t end_bytes) {
    const File file(path_);
    std::vector<std::byte> block;
    while (at_bytes_ < end_bytes) {
      block.resize(std::min(end_bytes - at_bytes_, kCheckBlockBytes));
      file.read_exact(at_bytes_, block);
      add(block);
    }
  }

  const std::string path_;
  const Checksum expected_;
  std::uint64_t at_bytes_ = expected_.offset_bytes;
  std::uint32_t sum_ = 0;
};

// Elements in file order.
void check_elements(const Array& array, Account* account) {
  std::optional<Summing> summing;
  if (const auto& sum = Array::Impl::of(array)->rows->checksum()) summing.emplace(array, *sum);
  const Array flat = array.flat(account->options.memory_bytes);
  const std::uint64_t item_bytes = std::max<std::uint64_t>(1, flat.dtype().itemsize_bytes);
  const std::uint64_t most = std::max<std::uint64_t>(1, kCheckBlockBytes / item_bytes);
  const auto block = std::make_unique_for_overwrite<std::byte[]>(
      std::min(most, std::max<std::uint64_t>(1, flat.rows())) * item_bytes);
  for (std::uint64_t first = 0; first < flat.rows(); first += most) {
    const std::uint64_t count = std::min(most, flat.rows() - first);
    const std::span<std::byte> bytes(block.get(), count * item_bytes);
    flat.read(first, count, bytes);
    check_values(bytes, first, flat, account->options, &account->tally);
    if (summing) summing->add(bytes);
    account->advance(bytes.size());
  }
  if (summing) summing->finish();
}

// Every row with the bytes before it, which must be as before the first row.
void check_prefixed(const Array& array, const std::string& prefix, Account* account) {
  const std::uint64_t stride_bytes = prefix.size() + array.row_bytes();
  const std::string path = array.paths().front();
  OpenOptions raw{
      .dtype = "|u1",
      .shape = std::vector{array.rows(), stride_bytes},
      .headerless = true,
      .read = {.memory_bytes = account->options.memory_bytes, .cache = CacheMode::drop}};
  const Array stored = Array::open({&path, 1}, raw);
  const std::uint64_t most = std::max<std::uint64_t>(1, kCheckBlockBytes / stride_bytes);
  const auto block = std::make_unique_for_overwrite<std::byte[]>(most * stride_bytes);
  for (std::uint64_t first = 0; first < stored.rows(); first += most) {
    const std::uint64_t count = std::min(most, stored.rows() - first);
    stored.read(first, count, {block.get(), count * stride_bytes});
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::span<const std::byte> row(block.get() + i * stride_bytes, stride_bytes);
      if (std::memcmp(row.data(), prefix.data(), prefix.size()) != 0) {
        throw FormatError(path + ": row " + std::to_string(first + i) + " at byte " +
                          std::to_string((first + i) * stride_bytes) + ": expected " +
                          excerpt(prefix) + ", as before row 0, found " +
                          excerpt({reinterpret_cast<const char*>(row.data()), prefix.size()}));
      }
      check_values(row.subspan(prefix.size()), first + i, array, account->options, &account->tally);
    }
    account->advance(count * array.row_bytes());
  }
}

void check_file(const Array& array, Account* account) {
  const std::string& prefix = Array::Impl::of(array)->rows->row_prefix();
  if (!prefix.empty()) return check_prefixed(array, prefix, account);
  check_elements(array, account);
}

}  // namespace

void check_array(const Array& array, const CheckOptions& options, CheckResult* result) {
  if (options.count_nan && !can_count(array.dtype())) {
    throw std::invalid_argument("nan: expected an array of floating-point numbers, found dtype " +
                                result->info.dtype);
  }
  Account account{options, array.rows() * array.row_bytes(), result};
  for (const std::string& path : array.paths()) {
    const bool alone = array.paths().size() == 1;
    check_file(open_alone(path, alone, options, array.format()), &account);
  }
  account.report();
}

void check_arrays(std::span<const std::string> paths, bool expand, const CheckOptions& options,
                  CheckResult* result) {
  std::uint64_t all_bytes = 0;
  for (const ArrayInfo& one : result->info.arrays) all_bytes += one.bytes;
  Account account{options, all_bytes, result};
  bool counted = false;
  for (const ArrayInfo& one : result->info.arrays) {
    if (!one.fault.empty()) {
      result->notes.push_back("not checked: " + one.fault);
      continue;
    }
    CheckOptions each = options;
    each.file.key = one.key;
    const Array array = std::get<Array>(open_file(paths, expand, each.file, kNoReads));
    each.count_nan = options.count_nan && can_count(array.dtype());
    counted = counted || each.count_nan;
    Account part{each, all_bytes, result};
    for (const std::string& path : array.paths()) {
      check_file(open_alone(path, false, each, array.format()), &part);
    }
    account.tally.nan += part.tally.nan;
    account.tally.infinite += part.tally.infinite;
  }
  if (options.count_nan && !counted)
    throw std::invalid_argument("nan: expected an array of floating-point numbers, found none");
  account.report();
}

}  // namespace lowtide
