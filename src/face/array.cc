#include "lowtide/array.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "core/hash.h"
#include "face/array_impl.h"
#include "face/row_list.h"
#include "lowtide/bytes.h"
#include "span/plan.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kShortRunBytes = 16 * 1024;  // longer ones are read in place
constexpr std::uint32_t kRunGapBytes = 512;  // a read costs as much as a copy of more than that
constexpr std::uint32_t kRunSpanBytes = 512 * 1024;
constexpr std::uint64_t kRunMemoryBytes = 1024 * 1024;

std::vector<std::byte*> targets_of(std::byte* out, std::size_t count, std::uint64_t stride_bytes) {
  std::vector<std::byte*> targets(count);
  for (std::size_t i = 0; i < count; ++i) targets[i] = out + i * stride_bytes;
  return targets;
}

// Rows in a grid of chunks are many short runs, which touch if the rows follow each other. One long
// read and a copy per run cost a fraction of a read per run.
void read_runs(Store& store, std::span<const Read> reads) {
  SpanPlan plan;
  plan.start(reads, {.gap_bytes = kRunGapBytes, .max_span_bytes = kRunSpanBytes});
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(kRunMemoryBytes);
  std::vector<Span> spans;
  std::vector<Read> together;
  std::uint64_t used_bytes = 0, asked_bytes = 0;
  const auto flush = [&] {
    store.read(together, asked_bytes);
    for (std::size_t i = 0; i < spans.size(); ++i) plan.place(spans[i], together[i].into);
    spans.clear();
    together.clear();
    used_bytes = asked_bytes = 0;
  };
  for (Span span; plan.next(&span);) {
    if (used_bytes + span.size_bytes > kRunMemoryBytes) flush();
    together.push_back({.from = {.offset_bytes = span.offset_bytes,
                                 .size_bytes = span.size_bytes,
                                 .shard = span.shard},
                        .into = memory.get() + used_bytes});
    spans.push_back(span);
    used_bytes += span.size_bytes;
    asked_bytes += plan.placed_bytes(span);
  }
  flush();
}

// Rows in several parts: sorts by row, so that the reads of each part are sorted and can be merged.
void take_columns(Store& store, const Rows& rows, std::vector<std::uint64_t>& samples,
                  std::byte* out) {
  std::vector<std::size_t> by_row(samples.size());
  std::iota(by_row.begin(), by_row.end(), std::size_t{0});
  std::sort(by_row.begin(), by_row.end(),
            [&](std::size_t a, std::size_t b) { return samples[a] < samples[b]; });
  std::vector<std::uint64_t> sorted;
  std::vector<std::byte*> targets;
  for (const std::size_t i : by_row) {
    sorted.push_back(samples[i]);
    targets.push_back(out + i * rows.sample_bytes());
  }
  std::vector<Read> reads;
  for (std::uint64_t part = 0; part < rows.parts(); ++part) {
    rows.locate(0, part, sorted, targets, reads);
    if (reads.size() + sorted.size() > Engine::kMaxReads || part + 1 == rows.parts()) {
      if (rows.chunks() != nullptr && rows.sample_bytes() / rows.parts() < kShortRunBytes) {
        read_runs(store, reads);
      } else {
        store.read(reads);
      }
      reads.clear();
    }
  }
}

std::string chunks_text(const Rows& rows) {
  const ChunkGrid& chunks = *rows.chunks();
  return "C, in " + std::to_string(chunks.chunks()) + " chunks" +
         (rows.parts() == 1 ? ""
                            : ": a row is in " + std::to_string(rows.parts()) +
                                  " places, so gathering rows needs that many reads per row");
}

constexpr std::uint64_t kSampleReads = 64;
constexpr std::uint64_t kSampleBytes = 256;  // at most, per read

// The number-th of kSampleReads numbers from 0 to `last`. Not last * number / kSteps, which can
// overflow.
std::uint64_t spread(std::uint64_t number, std::uint64_t last) {
  constexpr std::uint64_t kSteps = kSampleReads - 1;
  return last / kSteps * number + last % kSteps * number / kSteps;
}

}  // namespace

Array::Array(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Array Array::open(const std::string& path, const OpenOptions& options) {
  return Array(Impl::open(array_paths(path, options), options));
}

Array Array::open(std::span<const std::string> paths, const OpenOptions& options) {
  return Array(Impl::open({paths.begin(), paths.end()}, options));
}

Array Array::open_stretches(ArrayStretches stretches, const ReadOptions& options) {
  return Array(Impl::open(std::move(stretches), options));
}

Array Array::open_chunks(ArrayChunks chunks, const ReadOptions& options) {
  return Array(Impl::open(std::move(chunks), options));
}

const DType& Array::dtype() const {
  return impl_->rows->dtype();
}
const std::vector<std::uint64_t>& Array::shape() const {
  return impl_->rows->shape();
}
const std::string& Array::format() const {
  return impl_->format;
}
bool Array::fortran_order() const {
  return impl_->rows->fortran_order();
}
std::uint64_t Array::rows() const {
  return impl_->rows->size();
}
std::uint64_t Array::row_bytes() const {
  return impl_->rows->sample_bytes();
}
std::vector<std::string> Array::paths() const {
  if (!impl_->path.empty()) return {impl_->path};
  return impl_->rows->shards()->paths();
}
std::vector<std::uint64_t> Array::file_rows() const {
  return impl_->rows->file_rows();
}
std::uint64_t Array::memory_bytes() const {
  return impl_->holder->options.memory_bytes;
}

void Array::read(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const {
  const std::shared_ptr<Store> store = impl_->holder->store();
  const Rows& rows = *impl_->rows;
  if (first > rows.size() || count > rows.size() - first)
    throw_out_of_bounds(std::to_string(first + count), rows.size());
  check_out(out, count, rows.sample_bytes());
  if (rows.sample_bytes() == 0) return;
  if (rows.parts() == 1) {
    // Rows that do not touch need a read each, so not too many of them are planned at a time.
    const std::uint64_t most = std::min(count, rows.rows_for(kTakeRows));
    std::vector<Read> reads;
    for (std::uint64_t done = 0; done < count; done += most) {
      reads.clear();
      rows.locate_run(first + done, std::min(most, count - done),
                      out.data() + done * rows.sample_bytes(), reads);
      store->read(reads);
    }
    return;
  }
  std::vector<std::uint64_t> samples;
  for (std::uint64_t done = 0; done < count; done += samples.size()) {
    samples.resize(std::min<std::uint64_t>(kTakeRows, count - done));
    std::iota(samples.begin(), samples.end(), first + done);
    take_columns(*store, rows, samples, out.data() + done * rows.sample_bytes());
  }
}

void Array::take(RowList list, std::span<std::byte> out) const {
  const std::shared_ptr<Store> store = impl_->holder->store();
  const Rows& rows = *impl_->rows;
  const std::uint64_t row_bytes = rows.sample_bytes();
  check_out(out, length(list), row_bytes);
  for_pieces(list, rows.size(), [&](std::size_t first, std::vector<std::uint64_t>& samples) {
    if (row_bytes == 0) return;
    if (rows.parts() > 1) {
      take_columns(*store, rows, samples, out.data() + first * row_bytes);
      return;
    }
    std::vector<Read> reads;
    rows.locate(0, 0, samples,
                targets_of(out.data() + first * row_bytes, samples.size(), row_bytes), reads);
    store->read(reads);
  });
}

void Array::take_part(RowList list, std::uint64_t offset_bytes, std::uint64_t size_bytes,
                      std::span<std::byte> out) const {
  const std::shared_ptr<Store> store = impl_->holder->store();
  const Rows& rows = *impl_->rows;
  if (rows.fortran_order() && rows.parts() > 1) {
    throw std::invalid_argument("take_part: the array is in Fortran order; it must be in C order");
  }
  if (offset_bytes > rows.sample_bytes() || size_bytes > rows.sample_bytes() - offset_bytes) {
    throw std::out_of_range("take_part: bytes " + std::to_string(offset_bytes) + " to " +
                            std::to_string(offset_bytes + size_bytes) + " are outside a row of " +
                            std::to_string(rows.sample_bytes()) + " bytes");
  }
  check_out(out, length(list), size_bytes);
  for_pieces(list, rows.size(), [&](std::size_t first, std::vector<std::uint64_t>& samples) {
    const auto targets = targets_of(out.data() + first * size_bytes, samples.size(), size_bytes);
    // A part of a row may be in many chunks, so not too many rows are planned at a time.
    const std::uint64_t most = std::min<std::uint64_t>(samples.size(), rows.rows_for(kTakeRows));
    std::vector<Read> reads;
    for (std::size_t done = 0; done < samples.size(); done += most) {
      const std::size_t now = std::min<std::size_t>(most, samples.size() - done);
      reads.clear();
      rows.locate_inside(offset_bytes, size_bytes, std::span(samples).subspan(done, now),
                         std::span(targets).subspan(done, now), reads);
      store->read(reads);
    }
  });
}

Array Array::flat(std::uint64_t memory_bytes) const {
  ReadOptions options = impl_->holder->options;
  options.memory_bytes = memory_bytes;
  options.engine = EngineKind::automatic;
  return Array(std::make_shared<Impl>(std::make_shared<const Rows>(impl_->rows->flat()),
                                      impl_->format, options, impl_->path, /*shared=*/true));
}

std::uint64_t Array::Impl::fingerprint() {
  if (const std::uint64_t known = fingerprint_.load(std::memory_order_relaxed)) return known;
  std::uint64_t hash = rows->layout_hash();
  const Rows elements = rows->flat();  // in file order; of chunks in C order, as their copy has it
  const std::uint64_t item = elements.sample_bytes();
  if (elements.data_bytes() > 0) {
    const std::uint64_t count =
        std::clamp<std::uint64_t>(kSampleBytes / item, 1, std::min(kSampleBytes, elements.size()));
    const std::uint64_t size_bytes = std::min(kSampleBytes, item);
    std::vector<std::byte> sampled(kSampleReads * count * size_bytes);
    std::vector<Read> reads;
    for (std::uint64_t i = 0; i < kSampleReads; ++i) {
      // The first elements, the last ones and some between.
      const std::uint64_t first = spread(i, elements.size() - count);
      std::byte* const target = sampled.data() + i * count * size_bytes;
      if (count > 1 || size_bytes == item) {
        elements.locate_run(first, count, target, reads);
      } else {
        elements.locate_inside(spread(i, item - size_bytes), size_bytes, {&first, 1}, {&target, 1},
                               reads);
      }
    }
    // Some may cross two files. Rows that do not touch are several reads, but the engine merges
    // them.
    if (!elements.has_gaps() && elements.chunks() == nullptr) {
      reads.resize(std::min<std::size_t>(reads.size(), kSampleReads));
    }
    holder->store_of_run()->read(reads);
    hash = hash_with(hash, std::span<const std::byte>(sampled));
  }
  fingerprint_.store(hash, std::memory_order_relaxed);
  return hash;
}

std::uint64_t Array::fingerprint() const {
  return impl_->fingerprint();
}

Stats Array::stats() const {
  Stats stats = impl_->holder->store()->stats();
  const Rows& rows = *impl_->rows;
  stats.layout = !rows.fortran_order() || rows.parts() == 1
                     ? (rows.chunks() != nullptr ? chunks_text(rows) : "C")
                     : "F: the elements of a row are one column apart, so gathering rows reads up "
                       "to all " +
                           format_bytes(rows.data_bytes()) + " per look-ahead";
  return stats;
}
void Array::close() {
  impl_->holder->close();
}
bool Array::closed() const {
  return impl_->holder->closed();
}

}  // namespace lowtide
