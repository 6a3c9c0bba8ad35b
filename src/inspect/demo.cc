#include "lowtide/command/demo.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>

#include "core/clock.h"
#include "inspect/stopwatch.h"
#include "lowtide/array.h"
#include "lowtide/error.h"
#include "order/mix.h"
#include "order/order.h"
#include "os/file.h"
#include "os/mapping.h"
#include "os/output_file.h"
#include "os/residency.h"
#include "system/mount.h"
#include "system/process.h"
#include "system/text_file.h"

namespace lowtide {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBatchRows = 4096, kEpochs = 2, kSeed = 0;
// Rows between two checks of the clock: a cold row can take milliseconds.
constexpr std::uint64_t kRowsBetweenLooks = 64;
constexpr std::uint64_t kBlockRows = 8192;

struct Task {
  std::string path;
  double seconds;
  std::function<void()> at_end;
};

bool lies_on_disk(const fs::path& folder) {
  std::error_code unknown;
  if (!fs::is_directory(folder, unknown)) return false;
  const std::optional<FileSystem> system = file_system_of(folder.string());
  return !system || (system->type != "tmpfs" && system->type != "ramfs");
}

// A row begins with its own number, so the reader can verify that it got the right one.
void check_row(const std::string& path, std::span<const std::byte> row, std::uint64_t number) {
  std::uint64_t found = 0;
  std::memcpy(&found, row.data(), sizeof found);
  if (found == number) return;
  throw FormatError(path + ": expected row " + std::to_string(number) + ", found row " +
                    std::to_string(found));
}

// `read` copies one row into place; `end_batch` is called after every 4096 rows.
template <typename Read, typename EndBatch>
DemoRate read_rows(const File& file, const Task& task, Read read, EndBatch end_batch) {
  const std::uint64_t count = file.shard().size_bytes / kDemoRowBytes;
  const std::unique_ptr<Order> order = make_shuffle(count, kSeed);
  std::vector<std::uint64_t> rows(kBatchRows);
  std::vector<std::byte> batch(kBatchRows * kDemoRowBytes);
  DemoRate rate;
  const Stopwatch watch({task.seconds});
  for (std::uint64_t at = 0; at < kEpochs * count && !watch.over();) {
    const std::uint64_t epoch = at / count, first = at % count;
    const std::uint64_t some = std::min(kBatchRows, count - first);
    order->fill(epoch, first, std::span(rows).first(some));
    for (std::uint64_t i = 0; i < some; ++i) {
      const std::span out = std::span(batch).subspan(i * kDemoRowBytes, kDemoRowBytes);
      read(rows[i] * kDemoRowBytes, out);
      check_row(file.shard().path, out, rows[i]);
      ++rate.rows;
      if (rate.rows % kRowsBetweenLooks == 0 && watch.over()) break;
    }
    end_batch();
    at += some;
  }
  rate.seconds = watch.seconds();
  task.at_end();
  return rate;
}

DemoRate read_mapped(const Task& task, bool let_go) {
  const File file(task.path);
  const Mapping mapping(file);
  const auto read = [&](std::uint64_t offset_bytes, std::span<std::byte> out) {
    std::memcpy(out.data(), mapping.bytes().data() + offset_bytes, out.size());
  };
  return read_rows(file, task, read, [&] {
    if (let_go) mapping.let_go();
  });
}

// A new map for every batch.
DemoRate read_mapped_again(const Task& task) {
  const File file(task.path);
  std::optional<Mapping> mapping;
  const auto read = [&](std::uint64_t offset_bytes, std::span<std::byte> out) {
    if (!mapping) mapping.emplace(file);
    std::memcpy(out.data(), mapping->bytes().data() + offset_bytes, out.size());
  };
  return read_rows(file, task, read, [&] { mapping.reset(); });
}

DemoRate read_plainly(const Task& task) {
  const File file(task.path);
  const auto read = [&](std::uint64_t offset_bytes, std::span<std::byte> out) {
    file.read_exact(offset_bytes, out);
  };
  return read_rows(file, task, read, [] {});
}

DemoRate read_by_us(const Task& task, CacheMode cache) {
  const std::string& path = task.path;
  const std::uint64_t count = File(path).shard().size_bytes / kDemoRowBytes;
  OpenOptions options{.dtype = "uint8", .shape = std::vector{count, kDemoRowBytes}};
  options.read = {.memory_bytes = kDemoMemoryBytes, .cache = cache};
  const Array array = Array::open(path, options);
  DemoRate rate;
  const Stopwatch watch({task.seconds});
  for (std::uint64_t epoch = 0; epoch < kEpochs && !watch.over(); ++epoch) {
    Batches batches = array.batches({.batch_size = kBatchRows, .seed = kSeed, .epoch = epoch});
    while (!watch.over()) {
      const Batch batch = batches.next();
      if (!batch) break;
      for (std::size_t i = 0; i < batch.rows(); ++i) {
        check_row(path, batch.column(0).subspan(i * kDemoRowBytes, kDemoRowBytes),
                  batch.index()[i]);
      }
      rate.rows += batch.rows();
    }
  }
  rate.seconds = watch.seconds();
  const Stats stats = array.stats();
  rate.bytes_read = stats.bytes_read;
  rate.bytes_asked = stats.bytes_asked;
  task.at_end();
  return rate;
}

DemoRate read_by(const std::string& method, const Task& task) {
  if (method == "mmap") return read_mapped(task, false);
  if (method == "mmap-again") return read_mapped_again(task);
  if (method == "mmap-dontneed") return read_mapped(task, true);
  if (method == "pread") return read_plainly(task);
  if (method == "lowtide") return read_by_us(task, CacheMode::automatic);
  if (method == "lowtide-drop") return read_by_us(task, CacheMode::drop);
  throw std::invalid_argument("demo: unknown method \"" + method + "\"");
}

Figure disk_bytes() {
  return read_io({}, process_id()).disk_bytes;
}

}  // namespace

const std::vector<DemoMethod>& demo_methods() {
  static const std::vector<DemoMethod> kMethods{
      {"mmap", "a map, as np.memmap makes it"},
      {"lowtide", "lowtide, memory 32 MiB"},
      {"mmap-again", "a new map per batch (fix 1)"},
      {"lowtide-drop", "lowtide, cache drop"},
      {"mmap-dontneed", "a map, MADV_DONTNEED per batch (fix 2)"},
      {"pread", "plain pread loop"}};
  return kMethods;
}

std::string make_demo_folder(const std::string& parent) {
  fs::path in = parent;
  std::error_code error;
  if (parent.empty()) {
    in = fs::temp_directory_path(error);
    if (error || !lies_on_disk(in)) in = lies_on_disk("/var/tmp") ? "/var/tmp" : "/tmp";
  }
  const fs::path folder =
      in / ("lowtide-demo-" + std::to_string(process_id()) + "-" + std::to_string(now_ns()));
  if (!fs::create_directory(folder, error)) {
    throw IoError(error ? error.value() : EEXIST, "mkdir", folder.string());
  }
  return folder.string();
}

void write_demo_matrix(const std::string& path, std::uint64_t bytes, const DemoProgress& progress) {
  constexpr std::uint64_t kWords = kDemoRowBytes / sizeof(std::uint64_t);
  const std::uint64_t count = std::max<std::uint64_t>(bytes / kDemoRowBytes, 1);
  AppendFile file(path);
  std::vector<std::uint64_t> block;
  for (std::uint64_t first = 0; first < count; first += kBlockRows) {
    const std::uint64_t some = std::min(kBlockRows, count - first);
    block.resize(some * kWords);
    for (std::uint64_t i = 0; i < block.size(); ++i) {
      block[i] = i % kWords == 0 ? first + i / kWords : draw(kSeed, first * kWords + i);
    }
    const std::string_view text(reinterpret_cast<const char*>(block.data()),
                                block.size() * sizeof(std::uint64_t));
    if (const int err = file.append(text); err != 0) throw IoError(err, "write", path);
    if (progress) progress((first + some) * kDemoRowBytes, count * kDemoRowBytes);
  }
  if (const int err = write_back(File(path)); err != 0) throw IoError(err, "fsync", path);
}

std::uint64_t demo_group_limit(const std::string& folder) {
  for (const char* const name : {"/memory.max", "/memory.limit_in_bytes"}) {
    if (const std::optional<std::uint64_t> limit = number_in(folder + name)) return *limit;
  }
  throw std::invalid_argument("group: expected the folder of a cgroup with a memory limit, found " +
                              folder);
}

DemoRate read_demo_matrix(const std::string& path, const std::string& method, double seconds,
                          const std::function<void()>& at_end) {
  const Task task{path, seconds, at_end ? at_end : [] {}};
  const Figure before = disk_bytes();
  DemoRate rate = read_by(method, task);
  const Figure after = disk_bytes();
  if (before && after) rate.disk_bytes = *after.value - *before.value;
  return rate;
}

}  // namespace lowtide
