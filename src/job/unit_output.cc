#include "job/unit_output.h"

#include <array>

#include "job/array_output.h"
#include "token_format/token_source.h"
#include "writer/token_writer.h"

namespace lowtide {
namespace {

// Rows and windows.
class RowOutput final : public UnitOutput {
 public:
  RowOutput(const std::string& path, const DType& dtype, const std::vector<std::uint64_t>& shape,
            const GatherMemory& sizes, std::uint64_t job)
      : rows_(path, dtype, shape, sizes.output_bytes, sizes.dirty_chunk_bytes) {
    rows_.sign(job);
  }

  void append(std::span<const Bytes> units) override {
    for (const Bytes unit : units) rows_.append(unit);
  }
  void publish(const std::function<void()>& check) override {
    rows_.sync();
    check();
    rows_.publish();
  }

 private:
  ArrayOutput rows_;
};

// Values, and where each ragged row ends in the values of all shards. The first shard begins with
// the 0 of the first row.
class RaggedOutput final : public UnitOutput {
 public:
  RaggedOutput(const Shuffle& shuffle, const Array& values, std::uint64_t shard, Range items,
               const GatherMemory& sizes)
      : item_bytes_(values.row_bytes()),
        end_(items.first),
        values_(shuffle.parts(shard)[0], values.dtype(), value_shape(values, items.size()),
                sizes.output_bytes, sizes.dirty_chunk_bytes),
        ends_(shuffle.parts(shard)[1], DType::parse("int64"),
              {shuffle.buckets.shard(shard).size() + (shard == 0 ? 1 : 0)}, sizes.output_bytes,
              sizes.dirty_chunk_bytes) {
    values_.sign(shuffle.folder.hash());
    ends_.sign(shuffle.folder.hash());
    if (shard == 0) append_end();
  }

  void append(std::span<const Bytes> units) override {
    for (const Bytes unit : units) {
      values_.append(unit);
      if (item_bytes_ > 0) end_ += unit.size() / item_bytes_;
      append_end();
    }
  }
  void publish(const std::function<void()>& check) override {
    values_.sync();
    ends_.sync();
    check();
    values_.publish();
    ends_.publish();
  }

 private:
  static std::vector<std::uint64_t> value_shape(const Array& values, std::uint64_t count) {
    std::vector<std::uint64_t> shape = values.shape();
    shape[0] = count;
    return shape;
  }
  void append_end() {
    std::array<std::byte, sizeof(std::uint64_t)> stored;
    store_little(end_, stored.data());
    ends_.append(stored);
  }

  const std::uint64_t item_bytes_;
  std::uint64_t end_;
  ArrayOutput values_;
  ArrayOutput ends_;
};

class DocumentOutput final : public UnitOutput {
 public:
  DocumentOutput(const std::string& path, const Tokens& tokens, const GatherMemory& sizes,
                 std::uint64_t job)
      : type_(token_type(tokens.dtype()).value()),
        writer_(path, {.format = tokens.format(),
                       .dtype = std::string(token_type_name(type_)),
                       .memory_bytes = sizes.token_writer_bytes}) {
    writer_.sign(job);
  }

  void append(std::span<const Bytes> units) override {
    for (const Bytes unit : units)
      writer_.append(type_, unit.data(), unit.size() / token_bytes(type_));
  }
  void publish(const std::function<void()>& check) override {
    check();
    writer_.close();
  }

 private:
  const TokenType type_;
  TokenWriter::Impl writer_;
};

}  // namespace

std::unique_ptr<UnitOutput> make_output(const Shuffle& shuffle, const OpenSource& source,
                                        std::uint64_t shard, Range items,
                                        const GatherMemory& sizes) {
  const std::string path = shuffle.parts(shard)[0];
  const std::uint64_t job = shuffle.folder.hash();
  if (shuffle.unit == Unit::document)
    return std::make_unique<DocumentOutput>(path, *source.tokens, sizes, job);
  if (shuffle.shape.ragged)
    return std::make_unique<RaggedOutput>(shuffle, *source.array, shard, items, sizes);
  std::vector<std::uint64_t> shape{0, shuffle.block_size + 1};
  if (source.array) shape = source.array->shape();
  shape[0] = items.size();
  return std::make_unique<RowOutput>(
      path, source.array ? source.array->dtype() : source.tokens->dtype(), shape, sizes, job);
}

}  // namespace lowtide
