// tokens_fuzz.cc - any bytes as a token file, as a list of files, and split in two as an index and
// its data: the result is a FormatError or a TokenLayout that keeps its promises. Seeds:
// tests/golden/tokens.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "lowtide/error.h"
#include "token_format/token_list.h"
#include "token_format/tokens.h"

namespace lowtide {
namespace {

using Bytes = std::span<const std::byte>;

// assert() is compiled out of release builds, but a broken promise must stop the fuzzer.
void require(bool promise) {
  if (!promise) std::abort();
}

// After its bytes, a file continues with zeros up to its size.
struct Held {
  Bytes bytes;
  std::uint64_t file_bytes = 0;
};

using Folder = std::map<std::string, Held>;

void read(const Held& held, std::uint64_t offset_bytes, std::span<std::byte> out) {
  require(offset_bytes <= held.file_bytes && out.size() <= held.file_bytes - offset_bytes);
  require(out.size() <= 1024 * 1024);
  std::ranges::fill(out, std::byte{0});
  if (offset_bytes >= held.bytes.size()) return;
  const Bytes from = held.bytes.subspan(offset_bytes);
  std::ranges::copy(from.first(std::min(from.size(), out.size())), out.begin());
}

std::optional<TokenFile> find(const Folder& folder, const std::string& path) {
  const auto at = folder.find(path);
  if (at == folder.end()) return std::nullopt;
  const Held& held = at->second;
  return TokenFile{path, held.file_bytes,
                   [&held](std::uint64_t offset_bytes, std::span<std::byte> out) {
                     read(held, offset_bytes, out);
                   }};
}

std::uint64_t entry(const Held& index, std::uint64_t array_bytes, std::uint64_t i) {
  std::byte bytes[8];
  read(index, array_bytes + 8 * i, bytes);
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// What DocumentIndex promises about ends.
void check_ends(const TokenLayout& layout, const Held& held) {
  std::uint64_t before = 0;
  for (std::uint64_t d = 0; d < layout.documents->documents; ++d) {
    const std::uint64_t end = entry(held, layout.documents->documents_offset_bytes, d);
    require(end >= before);
    before = end;
  }
  require(before == layout.tokens);
}

// What DocumentIndex promises about the pointers and the boundaries.
void check_documents(const TokenLayout& layout, const Held& held) {
  const DocumentIndex& index = *layout.documents;
  const std::uint64_t item_bytes = layout.dtype.itemsize_bytes;
  std::size_t extent = 0;
  for (std::uint64_t s = 0; s < index.sequences && !layout.extents.empty(); ++s) {
    while (extent + 1 < layout.extents.size() && layout.extents[extent + 1].first_sequence <= s)
      ++extent;
    const TokenExtent& in = layout.extents[extent];
    require(in.first_sequence <= s);
    const std::uint64_t pointer = entry(held, index.pointers_offset_bytes, s);
    require(pointer >= in.offset_bytes && (pointer - in.offset_bytes) % item_bytes == 0);
    require((pointer - in.offset_bytes) / item_bytes <= in.tokens);
  }
  std::uint64_t before = 0;
  for (std::uint64_t d = 0; d <= index.documents; ++d) {
    const std::uint64_t sequence = entry(held, index.documents_offset_bytes, d);
    require(d > 0 || sequence == 0);
    require(sequence >= before);
    before = sequence;
  }
  require(before == index.sequences);
}

// What it promises about byte offsets.
void check_byte_offsets(const TokenLayout& layout, const Held& held) {
  const DocumentIndex& index = *layout.documents;
  const std::uint64_t item_bytes = layout.dtype.itemsize_bytes;
  std::uint64_t before = layout.extents.empty() ? 0 : layout.extents.front().offset_bytes;
  for (std::uint64_t d = 0; d <= index.documents && !layout.extents.empty(); ++d) {
    std::byte bytes[4];
    read(held, index.documents_offset_bytes + 4 * d, bytes);
    std::uint32_t offset = 0;
    std::memcpy(&offset, bytes, sizeof(offset));
    const TokenExtent& in = layout.extents.front();
    require(offset >= before && (offset - in.offset_bytes) % item_bytes == 0);
    require((offset - in.offset_bytes) / item_bytes <= in.tokens);
    before = offset;
  }
}

// What TokenLayout promises about records.
void check_records(const TokenLayout& layout, const Held& data) {
  const TokenRecords& records = *layout.records;
  require(records.documents() == layout.documents->documents);
  std::uint64_t first = 0;
  for (std::uint64_t d = 0; d < records.documents(); ++d) {
    require(records.first_token(d) == first);
    const std::uint64_t next = records.first_token(d + 1);
    require(next >= first);
    const std::uint64_t bytes = (next - first) * layout.dtype.itemsize_bytes;
    const std::uint64_t offset = records[d].offset_bytes;
    require(offset <= data.file_bytes && bytes <= data.file_bytes - offset);
    if (next > first) require(records.document_of(first) == d);
    first = next;
  }
  require(first == layout.tokens);
}

// A list names files below its folder only.
void read_list(Bytes bytes) {
  const Folder folder{{"d/index.json", {bytes, bytes.size()}}};
  try {
    const TokenFileList list = read_token_list(*find(folder, "d/index.json"), {});
    require(!list.files.empty());
    for (const ListedFile& file : list.files) {
      require(!file.name.empty() && file.name.front() != '/' && file.name != "..");
      require(file.name.find("/../") == std::string::npos && !file.name.starts_with("../") &&
              !file.name.ends_with("/.."));
    }
  } catch (const FormatError& error) {
    require(std::strlen(error.what()) < 4096);
  }
}

void check_layout(const TokenLayout& layout, const Folder& folder) {
  const Held& data = folder.at(layout.data_path);
  const std::uint64_t item_bytes = layout.dtype.itemsize_bytes;
  require(layout.dtype.kind == 'u' || layout.dtype.kind == 'i');
  require(layout.dtype.byte_order != '>');
  require(item_bytes == 1 || item_bytes == 2 || item_bytes == 4 || item_bytes == 8);
  require(layout.extents.size() <= kMostExtents);
  std::uint64_t tokens = 0;
  for (const TokenExtent& extent : layout.extents) {
    require(extent.tokens > 0 && extent.offset_bytes <= data.file_bytes);
    require(extent.tokens <= (data.file_bytes - extent.offset_bytes) / item_bytes);
    tokens += extent.tokens;
  }
  if (layout.records) {
    require(layout.extents.empty() && layout.documents);
    tokens = layout.records->tokens();
  }
  require(tokens == layout.tokens && tokens < kMostTokens);
  if (!layout.documents) return;
  const Held& index = folder.at(layout.documents->path);
  switch (layout.documents->by) {
    case DocumentsBy::sequences:
      return check_documents(layout, index);
    case DocumentsBy::token_ends:
      return check_ends(layout, index);
    case DocumentsBy::byte_offsets:
      return check_byte_offsets(layout, index);
    case DocumentsBy::records:
      return check_records(layout, data);
  }
}

void open_all(const Folder& folder, const TokenGiven& given) {
  for (const auto& [path, held] : folder) {
    try {
      const OpenBeside beside = [&](const std::string& other) { return find(folder, other); };
      check_layout(open_token_layout(*find(folder, path), beside, given), folder);
    } catch (const FormatError& error) {
      require(std::strlen(error.what()) < 4096);
    }
  }
}

void fuzz(Bytes bytes) {
  const Held whole{bytes, bytes.size()};
  const TokenGiven nothing;
  read_list(bytes);
  TokenGiven thorough;
  thorough.dtype = DType::parse("<i8");
  thorough.every_header = true;
  for (const bool with_type : {true, false}) {
    if (!with_type) thorough.dtype.reset();
    open_all({{"f.mds", whole}}, thorough);
  }
  open_all({{"f.mds", whole}}, nothing);
  open_all({{"f.bin", whole}, {"g.npy", whole}}, nothing);
  open_all({{"f.bin", whole}}, {.dtype = DType::parse("<u4"), .format = std::nullopt});
  for (const std::string_view word : token_words()) {
    open_all({{"f.bin", whole}, {"g.npy", whole}},
             {.dtype = std::nullopt, .format = std::string(word)});
  }
  // The data of a Megatron pair is never read; only its size matters.
  for (const std::uint64_t data_bytes : {std::uint64_t{64}, std::uint64_t{1} << 62}) {
    open_all({{"f.idx", whole}, {"f.bin", {{}, data_bytes}}}, nothing);
  }
  if (bytes.empty()) return;
  const std::size_t cut = std::min(std::to_integer<std::size_t>(bytes[0]), bytes.size() - 1);
  const Bytes data = bytes.subspan(1, cut);
  const Bytes index = bytes.subspan(1 + cut);
  open_all({{"f.idx", {index, index.size()}}, {"f.bin", {data, data.size()}}}, nothing);
  open_all({{"f.ds.index", {index, index.size()}}, {"f.ds", {data, data.size()}}}, nothing);
}

}  // namespace
}  // namespace lowtide

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lowtide::fuzz(std::as_bytes(std::span(data, size)));
  return 0;
}
