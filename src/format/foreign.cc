#include "format/foreign.h"

#include <algorithm>

#include "core/utf8.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

using std::string_view_literals::operator""sv;

// The little-endian integer of `bytes` bytes at `at`; 0 beyond the end.
std::uint64_t number_at(std::string_view start, std::size_t at, std::size_t bytes) {
  if (start.size() < at + bytes) return 0;
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(start[at + i]);
  }
  return value;
}

// The name of the first file in a zip archive. A .npz starts with an array, a torch.save file with
// its pickle.
std::string_view first_name_in_zip(std::string_view start) {
  constexpr std::size_t kLengthAt = 26, kNameAt = 30;
  const std::uint64_t length = number_at(start, kLengthAt, 2);
  return start.size() < kNameAt + length ? "" : start.substr(kNameAt, length);
}

bool is_npz(std::string_view start, std::uint64_t) {
  return first_name_in_zip(start).ends_with(".npy");
}

bool is_torch_zip(std::string_view start, std::uint64_t) {
  return first_name_in_zip(start).ends_with("/data.pkl");
}

bool is_gzip(std::string_view start, std::uint64_t) {
  return start.size() > 3 && (start[3] & 0xe0) == 0;  // flags that gzip reserves
}

bool is_bzip2(std::string_view start, std::uint64_t) {
  const std::string_view block = start.substr(std::min<std::size_t>(4, start.size()));
  return block.starts_with("1AY&SY"sv) || block.starts_with("\x17\x72\x45\x38\x50\x90"sv);
}

bool is_lz4(std::string_view start, std::uint64_t) {
  return start.size() > 4 && (start[4] & 0xc0) == 0x40;  // version 1
}

// The stream format of the .arrow files of Hugging Face datasets: the size of the schema, then a
// flatbuffer whose root is 16 bytes after its start.
bool is_arrow_stream(std::string_view start, std::uint64_t file_bytes) {
  const std::uint64_t size_bytes = number_at(start, 4, 4);
  return size_bytes >= 16 && size_bytes % 8 == 0 && size_bytes < file_bytes &&
         number_at(start, 8, 4) == 16;
}

bool is_safetensors(std::string_view start, std::uint64_t file_bytes) {
  constexpr std::size_t kHeaderAt = 8;
  constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
  const std::uint64_t header_bytes = number_at(start, 0, kHeaderAt);
  return start.size() >= kHeaderAt + 2 && header_bytes >= 2 && header_bytes <= kMaxHeaderBytes &&
         header_bytes <= file_bytes - kHeaderAt && start[kHeaderAt] == '{' &&
         "\"} "sv.find(start[kHeaderAt + 1]) != std::string_view::npos;
}

bool is_module_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  });
}

// The first two bytes alone prove too little. Protocols 4 and later begin with the size of a frame,
// older ones mostly with the module of a class, a dict or a list.
bool is_pickle(std::string_view start, std::uint64_t file_bytes) {
  if (start.size() < 5) return false;
  const char protocol = start[1];
  const std::string_view rest = start.substr(2);
  if (protocol == 4 || protocol == 5) {
    const std::uint64_t frame_bytes = number_at(rest, 1, 8);
    return rest[0] == '\x95' && frame_bytes > 0 && frame_bytes < file_bytes;
  }
  if (protocol != 2 && protocol != 3) return false;
  if (rest[0] == 'c') {
    const std::size_t end = rest.find('\n');
    return end != std::string_view::npos && is_module_name(rest.substr(1, end - 1));
  }
  return rest.starts_with("}q\0"sv) || rest.starts_with("]q\0"sv);
}

// Long enough, and UTF-8 without control characters from beginning to end. Numbers of two bytes or
// more do not look like that.
bool is_text(std::string_view start, std::uint64_t file_bytes) {
  constexpr std::size_t kLeastBytes = 64, kLongestCharacter = 4;
  if (start.size() < kLeastBytes || start.find_first_of(" \n") == std::string_view::npos) {
    return false;
  }
  while (!start.empty()) {
    const std::size_t size = utf8_size(start);
    if (size == 0) return start.size() < kLongestCharacter && file_bytes > kForeignStartBytes;
    const auto c = static_cast<unsigned char>(start[0]);
    if (c == 0x7f || (c < 0x20 && "\t\n\f\r"sv.find(start[0]) == std::string_view::npos)) {
      return false;
    }
    start.remove_prefix(size);
  }
  return true;
}

struct ForeignKind {
  std::size_t at;  // the offset of the magic
  std::string_view magic;
  bool (*agrees)(std::string_view start, std::uint64_t file_bytes);  // nullptr: the magic suffices
  Foreign foreign;
};

constexpr std::string_view kHdf5Magic = "\x89HDF\r\n\x1a\n"sv;
constexpr Foreign kHdf5{
    "an HDF5 file", "in Python, lowtide.open reads its data sets in place, if h5py is installed"};
constexpr Foreign kZip{"a zip archive", "unzip it and open the files in it"};
constexpr Foreign kArrow{
    "an Arrow file", "in Python, lowtide.open reads its columns in place, if pyarrow is installed"};

// The first match names the file, so more specific kinds come before less specific ones.
constexpr ForeignKind kForeignKinds[] = {
    {0,
     "PK\x03\x04"sv,
     is_npz,
     {"a NumPy .npz (a zip archive)", "unzip it and open the .npy files in it"}},
    {0,
     "PK\x03\x04"sv,
     is_torch_zip,
     {"a file of torch.save (a zip archive)", "torch.load it and np.save each tensor as .npy"}},
    {0, "PK\x03\x04"sv, nullptr, kZip},
    {0, "PK\x05\x06"sv, nullptr, kZip},
    {0, "\x1f\x8b\x08"sv, is_gzip, {"a gzip-compressed file", "gunzip it first"}},
    {0, "\x28\xb5\x2f\xfd"sv, nullptr, {"a zstd-compressed file", "decompress it with unzstd"}},
    {0, "BZh"sv, is_bzip2, {"a bzip2-compressed file", "bunzip2 it first"}},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     nullptr,
     {"an xz-compressed file", "decompress it with unxz"}},
    {0, "\x04\x22\x4d\x18"sv, is_lz4, {"an lz4-compressed file", "decompress it with unlz4"}},
    {257, "ustar"sv, nullptr, {"a tar archive", "unpack it and open the files in it"}},
    {0,
     "PAR1"sv,
     nullptr,
     {"a Parquet file", "read it with pyarrow or pandas and np.save each column as .npy"}},
    {0, "ARROW1\0\0"sv, nullptr, kArrow},
    {0, "\xff\xff\xff\xff"sv, is_arrow_stream, kArrow},
    {0, kHdf5Magic, nullptr, kHdf5},
    {512, kHdf5Magic, nullptr, kHdf5},  // after a user block; MATLAB 7.3 writes one
    {1024, kHdf5Magic, nullptr, kHdf5},
    {2048, kHdf5Magic, nullptr, kHdf5},
    {4096, kHdf5Magic, nullptr, kHdf5},
    {0,
     "MATLAB 5.0 MAT-file"sv,
     nullptr,
     {"a MATLAB file", "read it with scipy.io.loadmat and np.save each array as .npy"}},
    {0,
     "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv,
     nullptr,
     {"a file of torch.save (its old format)", "torch.load it and np.save each tensor as .npy"}},
    {0,
     "\x80"sv,
     is_pickle,
     {"a Python pickle", "load it with the program that wrote it and np.save each array as .npy"}},
    {0,
     ""sv,
     is_safetensors,
     {"a safetensors file", "load it with safetensors and np.save each tensor as .npy"}},
    {0, ""sv, is_text, {"text", "tokenize it, or convert its numbers to .npy"}},
};

}  // namespace

std::optional<Foreign> recognise_foreign(std::span<const std::byte> start,
                                         std::uint64_t file_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  for (const ForeignKind& kind : kForeignKinds) {
    if (text.size() < kind.at || !text.substr(kind.at).starts_with(kind.magic)) continue;
    if (kind.agrees == nullptr || kind.agrees(text, file_bytes)) return kind.foreign;
  }
  return std::nullopt;
}

void refuse_foreign(const std::string& path, std::uint64_t file_bytes, const ReadStart& read,
                    std::string_view expected) {
  std::vector<std::byte> start(std::min(file_bytes, kForeignStartBytes));
  read(0, start);
  const std::optional<Foreign> found = recognise_foreign(start, file_bytes);
  if (!found) return;
  throw FormatError(path + ": expected " + std::string(expected) + ", found " +
                    std::string(found->what) + ": " + std::string(found->advice) +
                    ". To read its bytes as raw data anyway, give their dtype");
}

void refuse_foreign_folder(const std::string& folder, const std::vector<std::string>& names) {
  constexpr std::string_view kListOfShards = "index.json";  // of MDS and of LitData
  if (std::ranges::find(names, kListOfShards) == names.end()) return;
  throw FormatError(folder + "/" + std::string(kListOfShards) +
                    ": expected arrays, found the index of a folder in MDS or LitData format; open "
                    "it as tokens, or name the array files themselves");
}

}  // namespace lowtide
