// mds.h - the parts of MDS: the columns of a shard, the shards of a folder, and where the tokens of
// a sample are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lowtide/dtype.h"
#include "token_format/token_list.h"

namespace lowtide::mds {

// How the tokens of a sample are stored.
enum class Encoding : std::uint8_t {
  plain,   // the values and nothing else
  shaped,  // a byte for the number of axes and the width of a size, the sizes, the values
  typed,   // a byte for the type before that
};

// Where the tokens of a sample are. A sample consists of the size of each column that has no fixed
// one (u32), in the order of the columns, and then of the columns.
struct TokenColumn {
  std::string name;
  Encoding encoding = Encoding::plain;
  std::optional<DType> dtype;               // nullopt: not said here
  std::optional<std::uint64_t> size_bytes;  // if it is fixed
  // Of the columns around it:
  std::uint64_t sizes_before = 0, sizes_after = 0;  // how many have no fixed size
  std::uint64_t fixed_bytes_before = 0, fixed_bytes_after = 0;

  [[nodiscard]] std::uint64_t size_words() const {
    return sizes_before + sizes_after + (size_bytes ? 0 : 1);
  }
  // Whether the size of a sample says where the tokens are. Otherwise its size words must be read.
  [[nodiscard]] bool implied() const {
    return sizes_before == 0 && (sizes_after == 0 || size_bytes.has_value());
  }
};

// The column that contains the tokens, from the JSON in a shard: the one that `key` names, or
// `tokens`, or the only one that can contain them. Throws FormatError without a path.
[[nodiscard]] TokenColumn read_token_column(std::string_view json,
                                            const std::optional<std::string>& key);

// For TokenFormat::read_list.
void read_list(std::string_view json, TokenFileList* list);

// Reads small pieces of a file in order, several with one read.
class Pieces {
 public:
  // `window_bytes` are read at a time.
  Pieces(const TokenFile& file, std::uint64_t window_bytes)
      : file_(file), window_bytes_(window_bytes) {}
  // Requires that they are inside the file, and at most 64 KiB. Valid until the next call.
  [[nodiscard]] std::span<const std::byte> at(std::uint64_t offset_bytes, std::uint64_t size_bytes);

 private:
  const TokenFile& file_;
  const std::uint64_t window_bytes_;
  std::uint64_t first_ = 0;
  std::vector<std::byte> held_;
};

// Finds the tokens of one sample after the other. The file is borrowed.
class Samples {
 public:
  struct Tokens {
    std::uint64_t offset_bytes = 0;
    std::uint64_t count = 0;
  };

  // Throws FormatError if the type of the tokens is not known, or another one was given.
  Samples(const TokenFile& file, TokenColumn column, const TokenGiven& given);

  // Whether find() needs no header.
  [[nodiscard]] bool implied() const {
    return column_.implied() && column_.encoding != Encoding::typed;
  }
  // Known after the first sample, and mostly before.
  [[nodiscard]] const std::optional<DType>& dtype() const { return column_.dtype; }
  [[nodiscard]] const std::string& column() const { return column_.name; }

  // Of the sample in bytes begin .. end - 1, which are inside the file. Throws FormatError. Without
  // `read_header` nothing is read, which requires implied().
  [[nodiscard]] Tokens find(std::uint64_t sample, std::uint64_t begin, std::uint64_t end,
                            bool read_header);

 private:
  struct Payload {  // the column of one sample
    std::uint64_t offset_bytes = 0, size_bytes = 0;
  };

  [[nodiscard]] std::string where() const;
  [[noreturn]] void fail(const std::string& expected, const std::string& found) const;
  [[nodiscard]] Payload find_payload(std::uint64_t begin, std::uint64_t end, bool read_sizes);
  void read_sizes(std::uint64_t begin, std::uint64_t variable_bytes, Payload* payload);
  [[nodiscard]] Tokens whole(const Payload& payload, std::uint64_t header_bytes) const;
  [[nodiscard]] Tokens implied_array(const Payload& payload) const;
  [[nodiscard]] Tokens read_array(const Payload& payload);
  void check_type(const DType& found);

  const TokenFile& file_;
  TokenColumn column_;
  Pieces pieces_;
  std::uint64_t sample_ = 0, begin_ = 0;
};

}  // namespace lowtide::mds
