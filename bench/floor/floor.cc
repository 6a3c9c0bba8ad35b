// The floor of a benchmark: only the reads and copies that a bounded reader cannot avoid, without
// an engine, a budget, an order of its own, batches to hand over, or Python.
//
//   floor rows FILE ROW_BYTES WINDOW_BYTES GAP_BYTES SECONDS   cached rows, sorted and merged, 2
//   threads floor held FILE ROW_BYTES SECONDS                          rows of a copy in memory, 1
//   thread floor windows FILE BLOCK_SIZE SECONDS                      batches of 12 windows,
//   widened, 1 thread
//
// Prints how many rows or batches it read, as JSON.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kThreads = 2;
constexpr std::size_t kSpanBytes = 256 << 10;  // stays in the L2 cache
constexpr std::size_t kBatch = 12;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

void read_all(int file, std::byte* into, std::size_t bytes, std::uint64_t offset) {
  while (bytes > 0) {
    const ssize_t got = ::pread(file, into, bytes, static_cast<off_t>(offset));
    if (got <= 0) die("pread");
    into += got;
    bytes -= static_cast<std::size_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
}

// Rows in random order, each once per epoch.
std::vector<std::uint32_t> permutation(std::uint64_t rows) {
  std::vector<std::uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(0));
  return order;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// The timed part: it begins when this is made.
class Timed {
 public:
  explicit Timed(double seconds)
      : end_(begin_ +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {
    (void)::getrusage(RUSAGE_SELF, &before_);
  }

  [[nodiscard]] bool over() const { return Clock::now() >= end_; }

  void print(std::uint64_t done) const {
    rusage after{};
    (void)::getrusage(RUSAGE_SELF, &after);
    std::printf("{\"done\": %llu, \"seconds\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f}\n",
                static_cast<unsigned long long>(done),
                std::chrono::duration<double>(Clock::now() - begin_).count(),
                seconds_of(after.ru_utime) - seconds_of(before_.ru_utime),
                seconds_of(after.ru_stime) - seconds_of(before_.ru_stime));
  }

 private:
  Clock::time_point begin_ = Clock::now(), end_;
  rusage before_{};
};

struct Rows {
  int file;
  std::uint64_t row_bytes;
  std::uint64_t gap_bytes;
  std::uint64_t window_rows;
  const std::vector<std::uint32_t>& order;
};

// Reads windows of the order until the time is over: sorts the rows of a window, reads neighbours
// together, and puts every row where the order wants it.
void read_windows(const Rows& in, const Timed& timed, std::atomic<std::uint64_t>& next,
                  std::atomic<std::uint64_t>& done) {
  std::vector<std::byte> window(in.window_rows * in.row_bytes), span(kSpanBytes);
  std::vector<std::uint64_t> keys(in.window_rows);
  const std::uint64_t windows = in.order.size() / in.window_rows;
  while (!timed.over()) {
    const std::uint64_t first = next++ % windows * in.window_rows;
    for (std::uint64_t i = 0; i < in.window_rows; ++i) {
      keys[i] = std::uint64_t{in.order[first + i]} << 32U | i;
    }
    std::sort(keys.begin(), keys.end());
    for (std::size_t from = 0, to = 0; from < keys.size(); from = to) {
      const std::uint64_t start = (keys[from] >> 32U) * in.row_bytes;
      std::uint64_t stop = start + in.row_bytes;
      for (to = from + 1; to < keys.size(); ++to) {
        const std::uint64_t at = (keys[to] >> 32U) * in.row_bytes;
        if (at - stop > in.gap_bytes || at + in.row_bytes - start > kSpanBytes) break;
        stop = at + in.row_bytes;
      }
      std::byte* const single = window.data() + (keys[from] & 0xFFFF'FFFFU) * in.row_bytes;
      read_all(in.file, to - from == 1 ? single : span.data(), stop - start, start);
      for (std::size_t i = from; to - from > 1 && i < to; ++i) {
        std::memcpy(window.data() + (keys[i] & 0xFFFF'FFFFU) * in.row_bytes,
                    span.data() + ((keys[i] >> 32U) * in.row_bytes - start), in.row_bytes);
      }
    }
    done += in.window_rows;
  }
}

void rows(int file, std::uint64_t file_bytes, char** words, double seconds) {
  const std::uint64_t row_bytes = std::strtoull(words[0], nullptr, 10);
  const std::uint64_t window_bytes = std::strtoull(words[1], nullptr, 10) / kThreads;
  const auto order = permutation(file_bytes / row_bytes);
  const Rows in{.file = file,
                .row_bytes = row_bytes,
                .gap_bytes = std::strtoull(words[2], nullptr, 10),
                .window_rows = std::min<std::uint64_t>(window_bytes / row_bytes, order.size()),
                .order = order};
  std::atomic<std::uint64_t> next = 0, done = 0;
  const Timed timed(seconds);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] { read_windows(in, timed, next, done); });
  }
  for (std::thread& thread : threads) thread.join();
  timed.print(done);
}

void held(int file, std::uint64_t file_bytes, char** words, double seconds) {
  constexpr std::size_t kAhead = 4, kChunk = 4096;
  const std::uint64_t row_bytes = std::strtoull(words[0], nullptr, 10);
  void* const copy =
      ::mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) die("mmap");
  (void)::madvise(copy, file_bytes, MADV_HUGEPAGE);
  auto* const data = static_cast<std::byte*>(copy);
  read_all(file, data, file_bytes, 0);
  const auto order = permutation(file_bytes / row_bytes);
  std::vector<std::byte> chunk(kChunk * row_bytes);
  std::uint64_t done = 0;
  const Timed timed(seconds);
  for (; !timed.over(); done += kChunk) {
    for (std::size_t i = 0; i < kChunk; ++i) {
      const std::size_t at = (done + i) % order.size();
      const std::byte* const soon = data + order[(at + kAhead) % order.size()] * row_bytes;
      for (std::size_t line = 0; line < row_bytes; line += 64) __builtin_prefetch(soon + line);
      std::memcpy(chunk.data() + i * row_bytes, data + order[at] * row_bytes, row_bytes);
    }
  }
  timed.print(done);
}

void windows(int file, std::uint64_t file_bytes, char** words, double seconds) {
  const std::size_t block = std::strtoull(words[0], nullptr, 10);
  std::mt19937_64 random(0);
  const std::uint64_t starts = file_bytes / 2 / block - 1;
  std::vector<std::uint16_t> window(block + 1);
  std::vector<std::int64_t> x(kBatch * block), y(kBatch * block);
  std::uint64_t done = 0;
  const Timed timed(seconds);
  for (; !timed.over(); ++done) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      read_all(file, reinterpret_cast<std::byte*>(window.data()), window.size() * 2,
               random() % starts * block * 2);
      for (std::size_t t = 0; t < block; ++t) {
        x[i * block + t] = window[t];
        y[i * block + t] = window[t + 1];
      }
    }
  }
  timed.print(done);
}

}  // namespace

int main(int count, char** words) {
  if (count < 5) return 2;
  const std::string_view kind = words[1];
  const double seconds = std::strtod(words[count - 1], nullptr);
  const int file = ::open(words[2], O_RDONLY | O_CLOEXEC);
  if (file < 0) die(words[2]);
  const off_t size = ::lseek(file, 0, SEEK_END);
  if (size <= 0) die(words[2]);
  const auto bytes = static_cast<std::uint64_t>(size);
  if (kind == "rows" && count == 7) {
    rows(file, bytes, words + 3, seconds);
  } else if (kind == "held" && count == 5) {
    held(file, bytes, words + 3, seconds);
  } else if (kind == "windows" && count == 5) {
    windows(file, bytes, words + 3, seconds);
  } else {
    return 2;
  }
  return 0;
}
