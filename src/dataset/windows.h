// windows.h - training examples from token streams: block_size + 1 consecutive tokens, delivered as
// x and y in the type that a trainer wants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "dataset/documents.h"
#include "dataset/token_stream.h"
#include "dataset/widen.h"

namespace lowtide {

struct WindowsSource {
  std::shared_ptr<const TokenStream> stream;
  std::uint32_t first_shard = 0;  // of this stream, in the files of the whole
  // How to find document starts if documents are separated: by the index or by a token.
  std::shared_ptr<const Documents> documents = nullptr;
  std::optional<std::uint64_t> eot = std::nullopt;
};

struct WindowsOptions {
  std::uint64_t block_size = 0;
  TokenType to = TokenType::i64;
  bool anywhere = false;  // sample k starts at token k; else at token k * block_size
  bool separate = false;  // also delivers positions and cu_seqlens
};

// The samples of the first source, then those of the second, and so on. Each source must have at
// least block_size + 1 tokens.
class Windows final : public Dataset {
 public:
  // Where the arrays of a delivered batch are, as offsets into it.
  struct Shape {
    std::uint64_t y_bytes = 0;           // x is at 0
    std::uint64_t positions_bytes = 0;   // int32[rows * block_size]
    std::uint64_t cu_count_bytes = 0;    // uint64: how many entries cu_seqlens has
    std::uint64_t cu_seqlens_bytes = 0;  // int32[at most rows * block_size + 1]
    std::uint64_t end_bytes = 0;
  };

  Windows(std::vector<WindowsSource> sources, const WindowsOptions& options);

  [[nodiscard]] std::uint64_t size() const noexcept override { return first_.back(); }
  [[nodiscard]] std::uint64_t size_of(std::size_t source) const {
    return first_[source + 1] - first_[source];
  }
  // How many windows a stream of this many tokens has.
  [[nodiscard]] static std::uint64_t count(std::uint64_t tokens, const WindowsOptions& options);

  [[nodiscard]] std::uint64_t sample_bytes() const noexcept override { return sample_bytes_; }
  [[nodiscard]] std::uint64_t parts() const noexcept override { return 1; }
  [[nodiscard]] std::uint64_t reads_per_part() const noexcept override { return most_reads_; }
  [[nodiscard]] std::uint64_t data_bytes() const noexcept override { return data_bytes_; }
  [[nodiscard]] std::string path(std::uint32_t shard) const override;
  void locate(std::size_t field, std::uint64_t part, std::span<const std::uint64_t> samples,
              std::span<std::byte* const> targets, std::vector<Read>& out) const override;

  [[nodiscard]] bool as_read() const noexcept override { return false; }
  [[nodiscard]] std::uint64_t batch_bytes(std::uint64_t samples) const override {
    return shape(samples).end_bytes;
  }
  void deliver(const ReadSamples& read, std::byte* out) const override;
  // x and y; if documents are separated, also positions and cu_seqlens.
  void describe(std::uint64_t samples, std::span<const std::byte> batch,
                std::vector<Column>* columns) const override;

  [[nodiscard]] std::size_t sources() const noexcept override { return sources_.size(); }
  void number(std::span<std::uint64_t> samples,
              std::vector<std::uint64_t>* sources) const override {
    number_in_sources(first_, samples, sources);
  }

  // Makes only x and y, for consecutive rows that need not be a whole batch.
  void widen_rows(const ReadSamples& read, std::byte* x, std::byte* y) const;

  // Throws std::invalid_argument if the batch would be too large to address.
  [[nodiscard]] Shape shape(std::uint64_t rows) const;
  [[nodiscard]] const WindowsOptions& options() const { return options_; }

 private:
  struct Window {
    const WindowsSource& source;
    std::uint64_t first_token;
  };
  [[nodiscard]] Window window_of(std::uint64_t sample) const;
  [[noreturn]] void throw_misfit(const Window& window, const std::byte* staged) const;
  void starts_in(const Window& window, const std::byte* staged,
                 std::vector<std::uint64_t>* starts) const;
  void deliver_documents(const ReadSamples& read, std::byte* out) const;

  const std::vector<WindowsSource> sources_;
  const WindowsOptions options_;
  std::vector<std::uint64_t> first_;  // the first sample of each source, and the end
  std::uint64_t sample_bytes_ = 0;
  std::uint64_t most_reads_ = 1;
  std::uint64_t data_bytes_ = 0;
};

}  // namespace lowtide
