#include "lowtide/command/bench.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "inspect/bench_subject.h"
#include "inspect/hot_range.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "os/residency.h"
#include "os/ring.h"

namespace lowtide {
namespace {

constexpr double kMostSeconds = 3600;
constexpr double kLoadFactor = 5;  // times the duration of a cell: the most to read the file once
constexpr std::uint64_t kLeastHotBytes = 16 << 20;
constexpr std::uint64_t kTellingBytes = 64 << 20;  // a smaller file measures caches and start-up
constexpr std::uint64_t kCells = 12;               // per pattern: device, two cold, two hot, memory
constexpr const char* kStopped = "stopped";

void check_options(const BenchOptions& options) {
  if (!std::isfinite(options.seconds) || options.seconds <= 0 || options.seconds > kMostSeconds) {
    throw std::invalid_argument("seconds: expected a number above 0 and at most 3600, found " +
                                format_fixed(options.seconds, 3));
  }
}

std::string too_small(std::uint64_t bytes) {
  if (bytes >= kTellingBytes) return "";
  return "a file of " + format_bytes(bytes) +
         " is too small to say anything about this disk: the disk's own cache can hold it, and "
         "start-up takes longer than the reads themselves; measure a file of " +
         format_bytes(kTellingBytes) + " or more";
}

// One bench in progress: fills the report cell by cell.
class Bench {
 public:
  Bench(const std::string& path, const BenchOptions& options)
      : options_(options),
        before_(cached_of(path)),
        subject_(make_subject(path, options)),
        file_(std::make_shared<File>(subject_->data_path)),
        files_(std::make_shared<Files>(std::vector<Shard>{file_->shard()})) {
    report_.path = path;
    report_.bytes = file_->shard().size_bytes;
    report_.format = subject_->format;
    report_.unit = subject_->unit;
    report_.sample_bytes = subject_->grid.size_bytes;
    report_.samples = subject_->grid.count;
    report_.memory_bytes = subject_->memory_bytes;
    report_.batch_size = subject_->batch_size;
    report_.seconds = options.seconds;
    report_.why_no_uring = Ring::probe();
    report_.too_small = too_small(report_.bytes);
    if (!subject_->note.empty()) report_.notes.push_back(subject_->note);
  }

  BenchReport run() {
    report_.cached_before_bytes = subject_->data_path == report_.path ? before_ : cached();
    for (const bool random : {true, false}) {
      measure_device_cell(random);
      for (const EngineKind engine : {EngineKind::uring, EngineKind::pread}) {
        measure_cold(random, engine);
      }
    }
    measure_hot_cells();
    measure_memory();
    report_.cached_after_bytes = cached();
    std::ranges::stable_sort(report_.cells, {}, [](const BenchCell& cell) {
      return cell.pattern;  // "random" before "sequential"
    });
    report_.stopped = stopped();
    return std::move(report_);
  }

 private:
  [[nodiscard]] bool stopped() const { return options_.stop && options_.stop(); }
  [[nodiscard]] TimeLimit limit(double factor = 1) const {
    return {factor * options_.seconds, options_.stop};
  }

  static const char* word_of(EngineKind engine) {
    if (engine == EngineKind::uring) return "uring";
    return engine == EngineKind::pread ? "pread" : "memory";
  }

  static std::optional<std::uint64_t> cached_of(const std::string& path) {
    const auto known = residency(File(path));
    if (!known) return std::nullopt;
    return known->cached_bytes;
  }
  std::optional<std::uint64_t> cached() {
    const auto known = residency(*file_, 0, 0, &report_.cached_unknown);
    if (!known) return std::nullopt;
    return known->cached_bytes;
  }

  // A cell that will not be measured already has its reason.
  BenchCell& add_cell(bool random, const char* state, const char* engine) {
    BenchCell cell;
    cell.pattern = random ? "random" : "sequential";
    cell.state = state;
    cell.engine = engine;
    if (stopped()) {
      cell.why_not = kStopped;
    } else if (options_.progress) {
      options_.progress(cell.pattern + " " + state + " " + engine, report_.cells.size(), kCells);
    }
    report_.cells.push_back(std::move(cell));
    return report_.cells.back();
  }

  void measure_device_cell(bool random) {
    BenchCell& cell = add_cell(random, "cold", "device");
    if (!cell.why_not.empty()) return;
    const DeviceRate rate = measure_device(files_, subject_->grid, random, limit());
    cell.how = rate.how;
    cell.why_not = stopped() ? kStopped : rate.why_not;
    if (!cell.why_not.empty()) return;
    cell.seconds = rate.seconds;
    cell.samples = static_cast<std::uint64_t>(rate.samples);
    cell.bytes = cell.bytes_read = rate.bytes;
    cell.reads = rate.reads;
    cell.samples_per_second = rate.samples / rate.seconds;
    cell.bytes_per_second = static_cast<double>(rate.bytes) / rate.seconds;
    cell.percent_of_device = 100;
    device_rate_[random] = random ? cell.samples_per_second : cell.bytes_per_second;
  }

  void put(const ReadRate& rate, BenchCell* cell) {
    cell->how = rate.how;
    if (stopped()) cell->why_not = kStopped;
    if (!cell->why_not.empty()) return;
    cell->seconds = rate.seconds;
    cell->samples = rate.samples;
    cell->bytes = rate.bytes;
    cell->bytes_read = rate.bytes_read;
    cell->reads = rate.reads;
    cell->samples_per_second = static_cast<double>(rate.samples) / rate.seconds;
    cell->bytes_per_second = static_cast<double>(rate.bytes) / rate.seconds;
  }

  void measure_cold(bool random, EngineKind engine) {
    BenchCell& cell = add_cell(random, "cold", word_of(engine));
    if (!cell.why_not.empty()) return;
    if (engine == EngineKind::uring && !report_.why_no_uring.empty()) {
      cell.why_not = report_.why_no_uring;
    } else if (file_->direct_fd() < 0) {
      cell.why_not = "this file system has no direct I/O, so the page cache cannot be bypassed";
    } else {
      const auto open =
          subject_->open({.engine = engine, .cache = CacheMode::drop, .past_cache = true});
      put(open->read_for(all(), random, limit()), &cell);
      const auto rate = random ? cell.samples_per_second : cell.bytes_per_second;
      if (rate && device_rate_[random]) {
        cell.percent_of_device = 100 * *rate / *device_rate_[random];
      }
    }
  }

  [[nodiscard]] SampleRange all() const { return {0, subject_->grid.count}; }

  // The samples inside a range of bytes.
  [[nodiscard]] SampleRange samples_in(ByteRange range) const {
    const SampleGrid& grid = subject_->grid;
    if (range.size_bytes == report_.bytes) return all();
    const std::uint64_t end = range.first_bytes + range.size_bytes;
    const auto upto = [&](std::uint64_t at) {
      return at <= grid.first_bytes ? 0 : (at - grid.first_bytes) / grid.stride_bytes;
    };
    const std::uint64_t first = range.first_bytes == 0 ? 0 : upto(range.first_bytes) + 1;
    const std::uint64_t last = std::min(upto(end), grid.count);
    // The last window may reach beyond the range: windows are longer than their stride.
    return {first, last > first + 1 ? last - first - 1 : 0};
  }

  void measure_hot_cells() {
    std::optional<WarmRange> warm;
    ByteRange range = find_hot_range(*file_);
    const std::uint64_t enough = std::min(report_.bytes, kLeastHotBytes);
    if (options_.warm && !stopped() &&
        range.size_bytes < std::min(report_.bytes, options_.warm_bytes)) {
      warm.emplace(file_, options_.warm_bytes, report_.cached_before_bytes == 0, options_.stop);
      range = warm->range();
      report_.notes.push_back(
          warm->stays() ? "the pages that warm loaded into the page cache stay there, because it "
                          "is unknown what was cached before"
                        : "the pages that warm loaded into the page cache were evicted again");
    }
    const SampleRange samples = samples_in(range);
    const bool usable = range.size_bytes >= enough && samples.count >= subject_->batch_size;
    if (usable) {
      report_.hot_first_bytes = range.first_bytes;
      report_.hot_bytes = range.size_bytes;
    }
    for (const bool random : {true, false}) {
      for (const EngineKind engine : {EngineKind::pread, EngineKind::uring}) {
        measure_hot(random, engine, usable, samples);
      }
    }
    if (usable) note_lost_pages(range);
  }

  void measure_hot(bool random, EngineKind engine, bool usable, SampleRange samples) {
    BenchCell& cell = add_cell(random, "hot", word_of(engine));
    if (!cell.why_not.empty()) return;
    if (engine == EngineKind::uring && !report_.why_no_uring.empty()) {
      cell.why_not = report_.why_no_uring;
    } else if (!usable && options_.warm) {
      cell.why_not =
          "the part of the file that warm loads holds fewer " + report_.unit + "s than one batch";
    } else if (!usable) {
      cell.why_not =
          report_.cached_unknown.empty()
              ? "too little of the file is in the page cache; use warm to load a part of it"
              : report_.cached_unknown + "; use warm to load a part of it";
    } else {
      const auto open = subject_->open({.engine = engine, .cache = CacheMode::keep});
      put(open->read_for(samples, random, limit()), &cell);
    }
  }

  void note_lost_pages(ByteRange range) {
    const auto known = residency(*file_, range.first_bytes, range.size_bytes);
    if (!known || known->cached_bytes >= range.size_bytes) return;
    report_.notes.push_back(
        format_bytes(range.size_bytes - known->cached_bytes) +
        " of the hot part was evicted while it was measured, so the hot numbers are too low");
  }

  // The file is loaded first and measured afterwards, so loading it is not in the numbers.
  void measure_memory() {
    std::unique_ptr<OpenSubject> open;
    std::string why_not;
    try {
      open = subject_->open({.engine = EngineKind::memory, .cache = CacheMode::drop});
      if (stopped() || !open->read_once(limit(kLoadFactor)).all) {
        why_not = "reading the whole file once takes longer than " +
                  std::to_string(static_cast<int>(kLoadFactor)) +
                  " times the seconds of one measurement";
      }
    } catch (const std::invalid_argument& too_small) {
      why_not = too_small.what();
    }
    for (const bool random : {true, false}) {
      BenchCell& cell = add_cell(random, "hot", "memory");
      if (cell.why_not.empty()) cell.why_not = why_not;
      if (cell.why_not.empty()) put(open->read_for(all(), random, limit()), &cell);
    }
  }

  const BenchOptions& options_;
  const std::optional<std::uint64_t> before_;  // taken first: opening the file caches its header
  std::unique_ptr<Subject> subject_;
  std::shared_ptr<File> file_;
  std::shared_ptr<Files> files_;
  std::optional<double> device_rate_[2];  // [0]: sequential, [1]: random
  BenchReport report_;
};

}  // namespace

BenchReport bench(const std::string& path, const BenchOptions& options) {
  check_options(options);
  return Bench(path, options).run();
}

}  // namespace lowtide
