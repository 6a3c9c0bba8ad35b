// dataset.h - WHERE a sample is: in which bytes of which file. Immutable, no I/O, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/extent.h"

namespace lowtide {

// One array of a delivered batch: where it is in the bytes of the batch, and what its elements are.
struct Column {
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  char kind = 'V';               // as DType::kind; V in a foreign byte order too
  std::uint64_t item_bytes = 1;  // at least 1
};

// What a sample has in one column of a batch that is delivered as it was read.
struct SampleField {
  std::uint64_t unit_bytes = 0;  // of a sample; if samples differ in length, of one unit of them
  char kind = 'V';               // as in Column
  std::uint64_t item_bytes = 1;
  // Which of the tables of lengths says how many units each sample has. None: they are all equal.
  std::optional<std::uint32_t> table = std::nullopt;
};

// The samples of a batch as they were read.
struct ReadSamples {
  std::span<const std::uint64_t> samples;
  // Samples of equal size are one after the other. Those of a ragged data set are there field by
  // field, as read_columns() says.
  const std::byte* bytes = nullptr;
  std::span<const Column> columns = {};
  std::span<const std::uint64_t> offsets = {};  // samples + 1 for each table of lengths
};

// Samples have the same size, unless the data set is ragged. A higher sample is never before a
// lower one in the list of shards, so sorting samples sorts their reads. Only chunks may be in any
// order in their file: there, sorting samples sorts the reads of each chunk. Correctness never
// depends on it, because engines sort. A sample has one field, or one per column if rows of several
// arrays come together. A field is made of parts: a row in Fortran order has one per column of the
// file, a row in several chunks one per place that it is in, and all others have one.
//
// A batch is delivered as its samples were read, one field after the other, or in a form that
// deliver() makes from them.
class Dataset {
 public:
  virtual ~Dataset() = default;

  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;          // samples
  [[nodiscard]] virtual std::uint64_t sample_bytes() const noexcept = 0;  // of the largest
  [[nodiscard]] virtual std::size_t fields() const noexcept { return 1; }
  [[nodiscard]] virtual SampleField field(std::size_t /*number*/) const noexcept {
    return {.unit_bytes = sample_bytes()};
  }
  // Of the field that has most.
  [[nodiscard]] virtual std::uint64_t parts() const noexcept = 0;
  // The most reads that locate makes for one part of all fields of one sample.
  [[nodiscard]] virtual std::uint64_t reads_per_part() const noexcept = 0;

  [[nodiscard]] virtual std::uint64_t data_bytes()
      const noexcept = 0;  // the size of the data that samples are taken from
  [[nodiscard]] virtual std::string path(std::uint32_t shard) const = 0;

  // Appends the reads that bring part `part` of a field of samples[i] to targets[i]. Samples that
  // are adjacent both in the file and in memory become one read. What is held in memory is copied
  // at once.
  virtual void locate(std::size_t field, std::uint64_t part, std::span<const std::uint64_t> samples,
                      std::span<std::byte* const> targets, std::vector<Read>& out) const = 0;

  // How many tables of lengths there are; 0: all samples have the same size. If samples that differ
  // in size are delivered as they were read, a batch says where each begins, in units.
  [[nodiscard]] virtual std::uint32_t tables() const noexcept { return 0; }
  [[nodiscard]] bool ragged() const noexcept { return tables() > 0; }
  // Writes how many units each sample has. May throw if lengths must be looked up.
  virtual void lengths(std::uint32_t table, std::span<const std::uint64_t> samples,
                       std::span<std::uint64_t> out) const;
  // Where the fields of this many samples are read to. `offsets` has samples + 1 entries for each
  // table of lengths.
  void read_columns(std::uint64_t samples, std::span<const std::uint64_t> offsets,
                    std::vector<Column>* columns) const;

  // Whether samples are delivered as they were read. Otherwise deliver() makes the batch.
  [[nodiscard]] virtual bool as_read() const noexcept { return true; }
  // The size of a delivered batch of this many samples of equal size, below 2^62. Requires samples
  // * sample_bytes to be below 2^62 too.
  [[nodiscard]] virtual std::uint64_t batch_bytes(std::uint64_t samples) const;
  // Makes the batch in `out`. May throw, for example std::invalid_argument for a token that does
  // not fit, FormatError for bytes that cannot be. Any thread.
  virtual void deliver(const ReadSamples& /*read*/, std::byte* /*out*/) const {}
  // Describes the columns of a batch of this many samples that deliver() made.
  virtual void describe(std::uint64_t samples, std::span<const std::byte> batch,
                        std::vector<Column>* columns) const;
  // Checks the bytes of a batch that is delivered as it was read. Throws FormatError.
  virtual void check(const ReadSamples& /*read*/) const {}

  // How many sources are mixed. Their samples follow each other.
  [[nodiscard]] virtual std::size_t sources() const noexcept { return 1; }
  // Replaces samples by the numbers by which users know them: those in their own source. With
  // several sources, also sets `sources` to the source of each.
  virtual void number(std::span<std::uint64_t> /*samples*/,
                      std::vector<std::uint64_t>* /*sources*/) const {}
};

// Where a sample of a mixture is. `first` has the first sample of each source, and the end.
[[nodiscard]] std::size_t source_of(std::span<const std::uint64_t> first, std::uint64_t sample);
// Dataset::number for a mixture.
void number_in_sources(std::span<const std::uint64_t> first, std::span<std::uint64_t> samples,
                       std::vector<std::uint64_t>* sources);

}  // namespace lowtide
