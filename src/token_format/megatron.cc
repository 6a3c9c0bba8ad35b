#include "token_format/megatron.h"

#include <filesystem>
#include <utility>

#include "core/checked.h"
#include "core/quote.h"
#include "lowtide/error.h"

namespace lowtide::megatron {
namespace {

constexpr std::string_view kDataSuffix = ".bin";
constexpr std::string_view kIndexSuffix = ".idx";

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr std::string_view kMagicWord = kMagic.substr(0, 7);  // enough to recognise the intent
constexpr std::string_view kLegacyMagic = "TNTIDX";

constexpr std::size_t kVersionAt = 9;
constexpr std::size_t kCodeAt = 17;
constexpr std::size_t kSequencesAt = 18;
constexpr std::size_t kBoundariesAt = 26;
constexpr std::size_t kHeaderBytes = 34;

constexpr std::uint64_t kLengthBytes = sizeof(std::int32_t);
constexpr std::uint64_t kPointerBytes = sizeof(std::int64_t);
constexpr std::uint64_t kPieceEntries = 32 * 1024;

bool has_magic(std::span<const std::byte> start) {
  return as_text(start).starts_with(kMagicWord) || as_text(start).starts_with(kLegacyMagic);
}

std::string with_suffix(const std::string& path, std::string_view suffix) {
  return std::filesystem::path(path).replace_extension(suffix).string();
}

// The two files of a pair, whichever was named.
struct Pair {
  TokenFile index;
  TokenFile data;
};

void check_magic(const TokenFile& index) {
  std::array<std::byte, kTokenStartBytes> room;
  const std::string_view start = as_text(read_token_start(index, &room));
  if (start.starts_with(kLegacyMagic)) {
    throw FormatError(index.path + ": expected the Megatron magic " + excerpt(kMagic) +
                      ", found the legacy format " + excerpt(kLegacyMagic) +
                      "; convert it with the tool that wrote it");
  }
  if (!start.starts_with(kMagic)) {
    throw FormatError(index.path + ": expected the Megatron magic " + excerpt(kMagic) + ", found " +
                      excerpt(start.substr(0, kMagic.size())));
  }
}

TokenFile open_partner(const TokenSource& source, std::string_view suffix,
                       const std::string& role) {
  const std::string& path = source.file.path;
  const std::string other = with_suffix(path, suffix);
  if (other == path) {
    throw FormatError(path + ": expected " + role + " under this name, found the index itself");
  }
  std::optional<TokenFile> partner = source.beside(other);
  if (!partner) throw FormatError(path + ": expected " + role + " in " + other + ", found no file");
  return *std::move(partner);
}

Pair open_pair(const TokenSource& source) {
  if (has_magic(source.start) || source.file.path.ends_with(kIndexSuffix)) {
    check_magic(source.file);
    return {.index = source.file, .data = open_partner(source, kDataSuffix, "the Megatron data")};
  }
  Pair pair{.index = open_partner(source, kIndexSuffix, "the Megatron index"), .data = source.file};
  check_magic(pair.index);
  return pair;
}

DType dtype_of(std::uint8_t code, const std::string& path) {
  switch (code) {
    case 1:
      return DType::parse("|u1");
    case 2:
      return DType::parse("|i1");
    case 3:
      return DType::parse("<i2");
    case 4:
      return DType::parse("<i4");
    case 5:
      return DType::parse("<i8");
    case 8:
      return DType::parse("<u2");
    default:
      throw FormatError(path +
                        ": expected the dtype code of an integer (1 to 5 or 8) at byte 17, found " +
                        std::to_string(code) + (code == 6 || code == 7 ? ", a float" : ""));
  }
}

struct Header {
  DType dtype;
  std::uint64_t sequences = 0;
  std::uint64_t boundaries = 0;

  [[nodiscard]] std::uint64_t pointers_at() const { return kHeaderBytes + 4 * sequences; }
  [[nodiscard]] std::uint64_t boundaries_at() const { return kHeaderBytes + 12 * sequences; }
};

void check_size(const Header& header, const TokenFile& index) {
  std::uint64_t bytes = 0;
  std::uint64_t boundary_bytes = 0;
  const bool fits = checked_mul(header.sequences, kLengthBytes + kPointerBytes, &bytes) &&
                    checked_mul(header.boundaries, kPointerBytes, &boundary_bytes) &&
                    checked_add(bytes, boundary_bytes, &bytes) &&
                    checked_add(bytes, kHeaderBytes, &bytes) && bytes <= index.file_bytes;
  const std::uint64_t rest_bytes = fits ? index.file_bytes - bytes : 0;
  if (fits && (rest_bytes == 0 || rest_bytes == header.sequences)) return;
  throw FormatError(
      index.path + ": expected 34 + 12 * S + 8 * D bytes (plus S with modes) for S = " +
      std::to_string(header.sequences) + " sequences and D = " + std::to_string(header.boundaries) +
      " document boundaries, found " + std::to_string(index.file_bytes));
}

Header read_header(const TokenFile& index) {
  if (index.file_bytes < kHeaderBytes) {
    throw FormatError(index.path + ": expected a Megatron header of " +
                      std::to_string(kHeaderBytes) + " bytes, found a file of " +
                      std::to_string(index.file_bytes));
  }
  std::array<std::byte, kHeaderBytes> bytes;
  index.read(0, bytes);
  const auto version = load_little<std::uint64_t>(&bytes[kVersionAt]);
  if (version != 1) {
    throw FormatError(index.path + ": expected Megatron index version 1, found " +
                      std::to_string(version));
  }
  Header header;
  header.dtype = dtype_of(load_little<std::uint8_t>(&bytes[kCodeAt]), index.path);
  header.sequences = load_little<std::uint64_t>(&bytes[kSequencesAt]);
  header.boundaries = load_little<std::uint64_t>(&bytes[kBoundariesAt]);
  check_size(header, index);
  if (header.boundaries == 0) {
    throw FormatError(index.path + ": expected at least 1 document boundary, found 0");
  }
  return header;
}

// Joins the sequences of an index into extents and checks each of them.
class ExtentMaker {
 public:
  ExtentMaker(const Pair& pair, std::uint64_t item_bytes) : pair_(pair), item_bytes_(item_bytes) {}

  void add(std::uint64_t sequence, std::int32_t length, std::int64_t pointer) {
    check_inside(sequence, length, pointer);
    const auto at_bytes = static_cast<std::uint64_t>(pointer);
    const auto tokens = static_cast<std::uint64_t>(length);
    if (!extents_.empty() && at_bytes == end_bytes_ && !waiting_) {
      extents_.back().tokens += tokens;
    } else if (waiting_ && waiting_->offset_bytes != at_bytes) {
      fail_stray(at_bytes, "sequence " + std::to_string(sequence) + " is");
    } else if (tokens > 0) {
      begin_extent(sequence, at_bytes, tokens);
    } else if (!waiting_) {
      waiting_ = {.offset_bytes = at_bytes, .tokens = 0, .first_sequence = sequence};
    }
    if (tokens > 0) end_bytes_ = at_bytes + tokens * item_bytes_;
  }

  std::vector<TokenExtent> finish() {
    if (waiting_ && !extents_.empty()) fail_stray(end_bytes_, "the data ends");
    return std::move(extents_);
  }

 private:
  void check_inside(std::uint64_t sequence, std::int32_t length, std::int64_t pointer) const {
    if (length < 0) fail(sequence, "a length of 0 or more", std::to_string(length));
    if (pointer < 0) fail(sequence, "a pointer of 0 or more", std::to_string(pointer));
    const std::uint64_t size_bytes = static_cast<std::uint64_t>(length) * item_bytes_;
    const auto at_bytes = static_cast<std::uint64_t>(pointer);
    if (fits_inside(at_bytes, size_bytes, pair_.data.file_bytes)) return;
    fail(sequence,
         std::to_string(size_bytes) + " bytes at byte " + std::to_string(at_bytes) + " of " +
             pair_.data.path,
         "its end at byte " + std::to_string(pair_.data.file_bytes));
  }

  void begin_extent(std::uint64_t sequence, std::uint64_t at_bytes, std::uint64_t tokens) {
    if (extents_.size() == kMostExtents) {
      fail(sequence, "at most " + std::to_string(kMostExtents) + " contiguous runs of sequences",
           "more; rewrite the data in the order of the index");
    }
    const std::uint64_t first = waiting_ ? waiting_->first_sequence : sequence;
    waiting_.reset();
    extents_.push_back({.offset_bytes = at_bytes, .tokens = tokens, .first_sequence = first});
  }

  [[noreturn]] void fail_stray(std::uint64_t expected_bytes, const std::string& what) const {
    fail(waiting_->first_sequence,
         "this empty sequence at byte " + std::to_string(expected_bytes) + ", where " + what,
         "it at byte " + std::to_string(waiting_->offset_bytes));
  }

  [[noreturn]] void fail(std::uint64_t sequence, const std::string& expected,
                         const std::string& found) const {
    throw FormatError(pair_.index.path + ": sequence " + std::to_string(sequence) + ": expected " +
                      expected + ", found " + found);
  }

  const Pair& pair_;
  const std::uint64_t item_bytes_;
  std::vector<TokenExtent> extents_;
  std::uint64_t end_bytes_ = 0;  // of the last extent
  std::optional<TokenExtent>
      waiting_;  // empty sequences that must be at the start of the next extent
};

std::vector<TokenExtent> read_extents(const Header& header, const Pair& pair) {
  const std::uint64_t most = std::min(header.sequences, kPieceEntries);
  std::vector<std::byte> lengths(most * kLengthBytes);
  std::vector<std::byte> pointers(most * kPointerBytes);
  ExtentMaker extents(pair, header.dtype.itemsize_bytes);
  for (std::uint64_t first = 0; first < header.sequences; first += most) {
    const std::uint64_t count = std::min(most, header.sequences - first);
    pair.index.read(kHeaderBytes + first * kLengthBytes,
                    std::span(lengths).first(count * kLengthBytes));
    pair.index.read(header.pointers_at() + first * kPointerBytes,
                    std::span(pointers).first(count * kPointerBytes));
    for (std::uint64_t i = 0; i < count; ++i) {
      extents.add(first + i, load_little<std::int32_t>(&lengths[i * kLengthBytes]),
                  load_little<std::int64_t>(&pointers[i * kPointerBytes]));
    }
  }
  return extents.finish();
}

[[noreturn]] void fail_boundary(const TokenFile& index, std::uint64_t boundary,
                                const std::string& expected, std::int64_t found) {
  throw FormatError(index.path + ": document boundary " + std::to_string(boundary) + ": expected " +
                    expected + ", found " + std::to_string(found));
}

// Boundaries go from 0 to the number of sequences and never decrease.
void check_boundaries(const Header& header, const TokenFile& index) {
  const std::uint64_t most = std::min(header.boundaries, kPieceEntries);
  std::vector<std::byte> piece(most * kPointerBytes);
  std::int64_t before = 0;
  for (std::uint64_t first = 0; first < header.boundaries; first += most) {
    const std::uint64_t count = std::min(most, header.boundaries - first);
    index.read(header.boundaries_at() + first * kPointerBytes,
               std::span(piece).first(count * kPointerBytes));
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto boundary = load_little<std::int64_t>(&piece[i * kPointerBytes]);
      if (first + i == 0 && boundary != 0) fail_boundary(index, 0, "0", boundary);
      if (boundary < before) {
        fail_boundary(index, first + i, std::to_string(before) + " or more", boundary);
      }
      before = boundary;
    }
  }
  if (static_cast<std::uint64_t>(before) != header.sequences) {
    fail_boundary(index, header.boundaries - 1,
                  "the number of sequences " + std::to_string(header.sequences), before);
  }
}

bool matches(const TokenSource& source) {
  if (has_magic(source.start)) return true;
  if (!source.file.path.ends_with(kDataSuffix)) return false;
  const std::optional<TokenFile> index = source.beside(with_suffix(source.file.path, kIndexSuffix));
  std::array<std::byte, kTokenStartBytes> room;
  return index && has_magic(read_token_start(*index, &room));
}

TokenLayout open(const TokenSource& source) {
  const Pair pair = open_pair(source);
  const Header header = read_header(pair.index);
  check_given_dtype(source.given, header.dtype, pair.index.path);
  TokenLayout layout;
  layout.data_path = pair.data.path;
  layout.dtype = header.dtype;
  layout.extents = read_extents(header, pair);
  check_boundaries(header, pair.index);
  layout.documents = {.path = pair.index.path,
                      .sequences = header.sequences,
                      .documents = header.boundaries - 1,
                      .lengths_offset_bytes = kHeaderBytes,
                      .pointers_offset_bytes = header.pointers_at(),
                      .documents_offset_bytes = header.boundaries_at()};
  return layout;
}

}  // namespace

constinit const TokenFormat kFormat{.word = "megatron",
                                    .suffix = kDataSuffix,
                                    .index_suffix = kIndexSuffix,
                                    .matches = matches,
                                    .open = open,
                                    .output = &kOutput};

}  // namespace lowtide::megatron
