// mds_files.h - MDS shards, LitData chunks and their index.json, built by hand so that they may
// lie.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/token_files.h"

namespace lowtide {

// The table of a shard or a chunk in front of its samples; `between` is the JSON of a shard.
inline std::string tabled(const std::vector<std::string>& samples, const std::string& between) {
  const auto count = static_cast<std::uint32_t>(samples.size());
  std::vector<std::uint32_t> words{count};
  auto at = static_cast<std::uint32_t>(4 * (count + 2) + between.size());
  words.push_back(at);
  std::string all;
  for (const std::string& sample : samples) {
    at += static_cast<std::uint32_t>(sample.size());
    words.push_back(at);
    all += sample;
  }
  return little_endian(words) + between + all;
}

// One axis of integers as MDS encodes it: in the fewest bytes, unless a width is given.
template <typename Integer>
std::string mds_array(const std::vector<Integer>& values, int width = 0) {
  const std::size_t size = values.size();
  if (width == 0) width = size < 0x100 ? 1 : size < 0x10000 ? 2 : 4;
  const int code = width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : 3;
  std::string out(1, static_cast<char>(1 << 2 | code));
  for (int i = 0; i < width; ++i) out += static_cast<char>(size >> (8 * i) & 0xff);
  return out + little_endian(values);
}

// The columns of a shard: names, encodings and sizes as JSON lists.
inline std::string mds_columns(const std::string& names, const std::string& encodings,
                               const std::string& sizes) {
  return R"({"column_encodings": )" + encodings + R"(, "column_names": )" + names +
         R"(, "column_sizes": )" + sizes +
         R"(, "compression": null, "format": "mds", "hashes": [], "size_limit": 67108864, "version": 2})";
}

inline std::string only_tokens(const std::string& encoding, const std::string& size = "null") {
  return mds_columns(R"(["tokens"])", "[\"" + encoding + "\"]", "[" + size + "]");
}

// A sample of one column without a fixed size.
inline std::string mds_sample(const std::string& column) {
  return little_endian(static_cast<std::uint32_t>(column.size())) + column;
}

inline std::string mds_entry(const std::string& name, std::uint64_t bytes, std::uint64_t samples,
                             const std::string& more = "") {
  return R"({"version": 2, "format": "mds", "raw_data": {"basename": ")" + name +
         R"(", "bytes": )" + std::to_string(bytes) + R"(, "hashes": {}}, "samples": )" +
         std::to_string(samples) + more + "}";
}

inline std::string mds_index(const std::vector<std::string>& entries) {
  std::string all;
  for (const std::string& entry : entries) all += (all.empty() ? "" : ", ") + entry;
  return R"({"version": 2, "shards": [)" + all + "]}";
}

inline std::string litdata_entry(const std::string& name, std::uint64_t bytes, std::uint64_t items,
                                 const std::string& tokens) {
  return R"({"chunk_bytes": )" + std::to_string(bytes) + R"(, "chunk_size": )" +
         std::to_string(items) + R"(, "dim": )" + tokens + R"(, "filename": ")" + name + "\"}";
}

inline std::string litdata_index(
    const std::vector<std::string>& entries, const std::string& format = "no_header_tensor:20",
    const std::string& config =
        R"("compression": null, "encryption": null, "item_loader": "TokensLoader")") {
  std::string all;
  for (const std::string& entry : entries) all += (all.empty() ? "" : ", ") + entry;
  return R"({"chunks": [)" + all + R"(], "config": {"chunk_bytes": null, "data_format": [")" +
         format + R"("], "data_spec": "[1, null]", )" + config + R"(}, "updated_at": "1.5"})";
}

}  // namespace lowtide
