// unit_output.h - one output shard of a shuffle: units are appended in their final order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "job/shuffle.h"

namespace lowtide {

// One thread at a time. Destroyed without publish(), it leaves nothing.
class UnitOutput {
 public:
  using Bytes = std::span<const std::byte>;

  virtual ~UnitOutput() = default;
  virtual void append(std::span<const Bytes> units) = 0;
  // Makes everything durable; `check` is called last, before the first file gets its name, and may
  // throw. Throws IoError.
  virtual void publish(const std::function<void()>& check) = 0;
};

// `first_item` is the element with which a ragged shard begins, and `items` how many it has.
// Without ragged units, `items` is how many units it has.
[[nodiscard]] std::unique_ptr<UnitOutput> make_output(const Shuffle& shuffle,
                                                      const OpenSource& source, std::uint64_t shard,
                                                      Range items, const GatherMemory& sizes);

}  // namespace lowtide
