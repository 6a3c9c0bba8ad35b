#include "inspect/bench_reading.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "order/mix.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kListedRows = 1 << 20;  // in one random order over a part of the file

std::uint64_t draw_below(std::uint64_t number, std::uint64_t limit) {
  return draw(kGolden64, number) % limit;
}

// How much the counters grew during a reading.
class Counted {
 public:
  explicit Counted(const Stats& before) : before_(before) {}
  void put(const Stats& after, ReadRate* rate) const {
    rate->bytes_read = after.bytes_read - before_.bytes_read;
    rate->reads = after.reads - before_.reads;
  }

 private:
  Stats before_;
};

// `next` returns the number of samples in the next batch, 0 at the end. Returns true if the end
// came before the time was up.
template <typename Next>
bool drain(Next next, std::uint64_t sample_bytes, const Stopwatch& watch, ReadRate* rate) {
  do {
    const std::uint64_t got = next();
    if (got == 0) return true;
    rate->samples += got;
    rate->bytes += got * sample_bytes;
  } while (!watch.over());
  return false;
}

class OpenRows final : public OpenSubject {
 public:
  OpenRows(Array array, std::uint64_t batch_size)
      : array_(std::move(array)), batch_size_(batch_size) {}

  ReadRate read_for(SampleRange range, bool random, const TimeLimit& limit) override {
    const bool whole = range.count == array_.rows();
    ReadRate rate;
    rate.how = "batches of " + std::to_string(batch_size_);
    const Counted counted(array_.stats());
    const Stopwatch watch(limit);
    for (std::uint64_t epoch = 0; rate.samples == 0 || !watch.over(); ++epoch) {
      BatchOptions options{.batch_size = batch_size_};
      std::vector<std::uint64_t> listed;
      if (whole) {
        options.order = random ? OrderKind::shuffle : OrderKind::sequential;
        options.epoch = epoch;
      } else {
        listed = list(range, random, epoch);
        options.rows = std::span<const std::uint64_t>(listed);
      }
      drain_epoch(options, watch, &rate);
    }
    rate.seconds = watch.seconds();
    counted.put(array_.stats(), &rate);
    return rate;
  }

  ReadRate read_once(const TimeLimit& limit) override {
    ReadRate rate;
    const Stopwatch watch(limit);
    rate.all =
        drain_epoch({.batch_size = batch_size_, .order = OrderKind::sequential}, watch, &rate);
    rate.seconds = watch.seconds();
    return rate;
  }

 private:
  static std::vector<std::uint64_t> list(SampleRange range, bool random, std::uint64_t epoch) {
    const std::uint64_t count = std::min(range.count, kListedRows);
    const std::uint64_t parts = range.count / count;
    std::vector<std::uint64_t> rows(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      rows[i] = range.first + (random ? draw_below(epoch * kListedRows + i, range.count)
                                      : epoch % parts * count + i);
    }
    return rows;
  }

  bool drain_epoch(const BatchOptions& options, const Stopwatch& watch, ReadRate* rate) {
    Batches batches = array_.batches(options);
    return drain([&] { return batches.next().rows(); }, array_.row_bytes(), watch, rate);
  }

  Array array_;
  std::uint64_t batch_size_;
};

class OpenWindows final : public OpenSubject {
 public:
  OpenWindows(Tokens tokens, std::uint64_t batch_size, std::uint64_t windows)
      : tokens_(std::move(tokens)), batch_size_(batch_size), windows_(windows) {}

  ReadRate read_for(SampleRange range, bool random, const TimeLimit& limit) override {
    const bool whole = range.count == windows_;
    const Counted counted(tokens_.stats());
    const Stopwatch watch(limit);
    ReadRate rate;
    if (whole || !random) {
      rate.how = "Loader, batches of " + std::to_string(batch_size_);
      read_loader(range, random, watch, &rate);
    } else {
      rate.how = "windows(), " + std::to_string(batch_size_) + " at a time";
      read_drawn(range, watch, &rate);
    }
    rate.seconds = watch.seconds();
    counted.put(tokens_.stats(), &rate);
    return rate;
  }

  ReadRate read_once(const TimeLimit& limit) override {
    ReadRate rate;
    const Stopwatch watch(limit);
    Loader loader = make_loader(false);
    std::uint64_t left = loader.steps();
    const auto next = [&]() -> std::uint64_t { return left-- == 0 ? 0 : loader.next().rows(); };
    rate.all = drain(next, window_bytes(), watch, &rate);
    rate.seconds = watch.seconds();
    return rate;
  }

 private:
  [[nodiscard]] std::uint64_t window_bytes() const {
    return (kBenchBlockSize + 1) * tokens_.dtype().itemsize_bytes;
  }
  [[nodiscard]] Loader make_loader(bool random) const {
    return Loader(tokens_, {.batch_size = batch_size_,
                            .block_size = kBenchBlockSize,
                            .order = random ? OrderKind::shuffle : OrderKind::sequential});
  }

  void read_loader(SampleRange range, bool random, const Stopwatch& watch, ReadRate* rate) const {
    Loader loader = make_loader(random);
    const std::uint64_t first = random ? 0 : range.first / batch_size_;
    const std::uint64_t steps =
        std::clamp<std::uint64_t>(range.count / batch_size_, 1, loader.steps() - first);
    std::uint64_t left = 0;
    const auto next = [&]() -> std::uint64_t {
      if (!random && left == 0) {  // start the range again
        loader.seek(first, 0);
        left = steps;
      }
      --left;
      return loader.next().rows();
    };
    (void)drain(next, window_bytes(), watch, rate);
  }

  void read_drawn(SampleRange range, const Stopwatch& watch, ReadRate* rate) const {
    std::vector<std::uint64_t> starts(batch_size_);
    std::uint64_t number = 0;
    const auto next = [&]() -> std::uint64_t {
      for (std::uint64_t& start : starts) {
        start = (range.first + draw_below(number++, range.count)) * kBenchBlockSize;
      }
      return tokens_.windows(std::span<const std::uint64_t>(starts), kBenchBlockSize).rows();
    };
    (void)drain(next, window_bytes(), watch, rate);
  }

  Tokens tokens_;
  std::uint64_t batch_size_, windows_;
};

}  // namespace

std::unique_ptr<OpenSubject> read_rows(Array array, std::uint64_t batch_size) {
  return std::make_unique<OpenRows>(std::move(array), batch_size);
}

std::unique_ptr<OpenSubject> read_windows(Tokens tokens, std::uint64_t batch_size,
                                          std::uint64_t windows) {
  return std::make_unique<OpenWindows>(std::move(tokens), batch_size, windows);
}

}  // namespace lowtide
