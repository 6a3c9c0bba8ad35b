// dense.h - columns of which some are sparse rows, delivered as dense matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataset/dataset.h"
#include "dataset/sparse.h"

namespace lowtide {

class Dense final : public Dataset {
 public:
  // One array of a batch: a field of equal size as it is stored, or sparse rows whose values are
  // that field and whose indices are the next one.
  struct Output {
    std::size_t field = 0;
    std::shared_ptr<const DenseRows> rows = nullptr;
  };

  Dense(std::shared_ptr<const Dataset> stored, std::vector<Output> outputs)
      : stored_(std::move(stored)), outputs_(std::move(outputs)) {}

  [[nodiscard]] std::uint64_t size() const noexcept override { return stored_->size(); }
  [[nodiscard]] std::uint64_t sample_bytes() const noexcept override {
    return stored_->sample_bytes();
  }
  [[nodiscard]] std::size_t fields() const noexcept override { return stored_->fields(); }
  [[nodiscard]] SampleField field(std::size_t number) const noexcept override {
    return stored_->field(number);
  }
  [[nodiscard]] std::uint64_t parts() const noexcept override { return stored_->parts(); }
  [[nodiscard]] std::uint64_t reads_per_part() const noexcept override {
    return stored_->reads_per_part();
  }
  [[nodiscard]] std::uint64_t data_bytes() const noexcept override { return stored_->data_bytes(); }
  [[nodiscard]] std::string path(std::uint32_t shard) const override {
    return stored_->path(shard);
  }
  void locate(std::size_t field, std::uint64_t part, std::span<const std::uint64_t> samples,
              std::span<std::byte* const> targets, std::vector<Read>& out) const override {
    stored_->locate(field, part, samples, targets, out);
  }
  [[nodiscard]] std::uint32_t tables() const noexcept override { return stored_->tables(); }
  void lengths(std::uint32_t table, std::span<const std::uint64_t> samples,
               std::span<std::uint64_t> out) const override {
    stored_->lengths(table, samples, out);
  }

  [[nodiscard]] bool as_read() const noexcept override { return false; }
  [[nodiscard]] std::uint64_t batch_bytes(std::uint64_t samples) const override;
  void deliver(const ReadSamples& read, std::byte* out) const override;
  void describe(std::uint64_t samples, std::span<const std::byte> batch,
                std::vector<Column>* columns) const override;

  [[nodiscard]] std::size_t sources() const noexcept override { return stored_->sources(); }
  void number(std::span<std::uint64_t> samples,
              std::vector<std::uint64_t>* sources) const override {
    stored_->number(samples, sources);
  }

 private:
  [[nodiscard]] std::uint64_t row_bytes(const Output& output) const {
    return output.rows ? output.rows->row_bytes() : stored_->field(output.field).unit_bytes;
  }

  const std::shared_ptr<const Dataset> stored_;
  const std::vector<Output> outputs_;
};

}  // namespace lowtide
