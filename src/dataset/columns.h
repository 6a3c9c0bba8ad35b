// columns.h - rows of several arrays that come together: sample i has row i of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataset/dataset.h"

namespace lowtide {

// Its fields are its columns. A mixture has several sources of the same columns: the samples of the
// first source, then those of the second, and so on.
class Columns final : public Dataset {
 public:
  // A data set with one field. Its files are numbered from `first_shard`, and those of columns and
  // sources follow each other.
  struct Part {
    std::shared_ptr<const Dataset> data;
    std::uint32_t first_shard = 0;
    // If samples differ in length: which table of lengths this column has, from 0. Columns of the
    // same table have the same lengths in every source.
    std::optional<std::uint32_t> table = std::nullopt;
    // All samples one after the other, if they are held in memory.
    const std::byte* held = nullptr;
    // If its elements are integers that must be below a number: that number. check() looks.
    std::uint64_t below = 0;
  };
  using Source = std::vector<Part>;

  // The columns of one source have equal sizes, and those of all sources have equal fields and
  // tables.
  explicit Columns(std::vector<Source> sources);

  [[nodiscard]] std::uint64_t size() const noexcept override { return first_.back(); }
  [[nodiscard]] std::uint64_t sample_bytes() const noexcept override { return sample_bytes_; }
  [[nodiscard]] std::size_t fields() const noexcept override { return fields_.size(); }
  [[nodiscard]] SampleField field(std::size_t number) const noexcept override {
    return fields_[number];
  }
  [[nodiscard]] std::uint64_t parts() const noexcept override { return parts_; }
  [[nodiscard]] std::uint64_t reads_per_part() const noexcept override { return reads_per_part_; }
  [[nodiscard]] std::uint64_t data_bytes() const noexcept override { return data_bytes_; }
  [[nodiscard]] std::string path(std::uint32_t shard) const override;
  void locate(std::size_t field, std::uint64_t part, std::span<const std::uint64_t> samples,
              std::span<std::byte* const> targets, std::vector<Read>& out) const override;

  [[nodiscard]] std::uint32_t tables() const noexcept override {
    return static_cast<std::uint32_t>(columns_of_tables_.size());
  }
  void lengths(std::uint32_t table, std::span<const std::uint64_t> samples,
               std::span<std::uint64_t> out) const override;
  void check(const ReadSamples& read) const override;
  [[nodiscard]] std::size_t sources() const noexcept override { return sources_.size(); }
  void number(std::span<std::uint64_t> samples,
              std::vector<std::uint64_t>* sources) const override {
    number_in_sources(first_, samples, sources);
  }

 private:
  template <class Each>
  void by_source(std::span<const std::uint64_t> samples, Each each) const;

  const std::vector<Source> sources_;
  std::vector<std::uint64_t> first_{0};  // the first sample of each source, and the end
  std::vector<SampleField> fields_;
  std::vector<std::size_t> columns_of_tables_;  // one column that each table of lengths is for
  std::uint64_t sample_bytes_ = 0;
  std::uint64_t parts_ = 1;
  std::uint64_t reads_per_part_ = 0;
  std::uint64_t data_bytes_ = 0;
};

}  // namespace lowtide
