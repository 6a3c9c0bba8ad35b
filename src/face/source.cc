#include "face/source.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/clock.h"
#include "engine/outcome.h"
#include "format/descr.h"
#include "format/registry.h"
#include "lowtide/bytes.h"
#include "os/limits.h"

namespace lowtide {
namespace {

using Shape = std::vector<std::uint64_t>;

// A flat file of several that are joined: the given shape tells the further axes, the file how many
// rows.
void give_rows(Layout* layout, const Shape& shape, const std::string& path) {
  std::uint64_t inner = 1;
  for (std::size_t axis = 1; axis < shape.size(); ++axis) inner *= shape[axis];
  const std::uint64_t elements = layout->shape.at(0);
  if (inner == 0 || elements % inner != 0) {
    throw FormatError(path + ": " + std::to_string(elements) +
                      " elements are not a multiple of the " + std::to_string(inner) +
                      " of a row of shape " + shape_text(shape));
  }
  layout->shape = shape;
  layout->shape[0] = elements / inner;
}

struct Opened {
  std::shared_ptr<File> file;
  Layout layout;
};

Opened open_one(const std::string& path, const OpenOptions& options, bool several) {
  Opened opened{.file = std::make_shared<File>(path), .layout = {}};
  raw::Description given;
  if (options.dtype) given.dtype = parse_descr(*options.dtype);
  if (!several) given.shape = options.shape;
  given.offset_bytes = options.offset_bytes;
  given.fortran_order = options.fortran_order;
  const File& file = *opened.file;
  opened.layout = open_layout(
      path, file.shard().size_bytes,
      [&](std::uint64_t offset, std::span<std::byte> out) { file.read_exact(offset, out); }, given);
  if (several && options.shape && !options.shape->empty() && opened.layout.format == "raw") {
    if (options.fortran_order.value_or(false)) {
      throw std::invalid_argument("several raw files in Fortran order: open each by itself");
    }
    give_rows(&opened.layout, *options.shape, path);
  }
  return opened;
}

}  // namespace

std::shared_ptr<Source> Source::open(std::vector<std::string> paths, const OpenOptions& options) {
  if (paths.empty()) throw std::invalid_argument("open: the list of files is empty");
  auto description = std::make_shared<Description>();
  description->options = options;
  if (options.memory_bytes == 0)
    description->options.memory_bytes = lowtide::default_memory_bytes(SystemRoot{});
  const bool several = paths.size() > 1;
  std::vector<RowsPart> parts;
  std::shared_ptr<File> only;  // the file whose header was read is the one that is read on
  for (std::string& path : paths) {
    if (several && File(path).shard().size_bytes == 0) continue;
    Opened opened = open_one(path, options, several);
    description->shards.push_back(opened.file->shard());
    description->format = opened.layout.format;
    parts.push_back({std::move(opened.layout), path});
    description->paths.push_back(std::move(path));
    only = std::move(opened.file);
  }
  if (parts.empty())
    throw FormatError("every one of the " + std::to_string(paths.size()) + " files is empty");
  description->rows = std::make_unique<const Rows>(std::move(parts));
  const Rows& rows = *description->rows;
  if (several && options.shape && *options.shape != rows.shape()) {
    throw FormatError("shape given is " + shape_text(*options.shape) +
                      ", but the files together have " + shape_text(rows.shape()));
  }
  auto source = std::make_shared<Source>(std::move(description));
  source->files().adopt(static_cast<std::uint32_t>(source->description().shards.size() - 1),
                        std::move(only));
  return source;
}

Source::Source(std::shared_ptr<const Description> description)
    : description_(std::move(description)),
      files_(std::make_shared<Files>(description_->shards)),
      budget_(description_->options.memory_bytes) {
  // Checked and given back: a row read by index lies in the caller's memory.
  (void)budget_.claim_all({{"one row", rows().sample_bytes()},
                           {"read buffers", engine_buffer_bytes(budget_.limit_bytes())}});
  decide_cache();
  engine_ = open_engine(files_, {.kind = description_->options.engine, .cache = cache_}, budget_);
}

void Source::decide_cache() {
  cache_ = description_->options.cache;
  cache_reason_ = "asked for";
  if (cache_ != CacheMode::automatic) return;
  const std::uint64_t total = files_->total_bytes();
  const auto available = available_bytes();
  cache_ = available && total < *available / 2 ? CacheMode::keep : CacheMode::drop;
  cache_reason_ =
      !available ? "the available memory is unknown"
                 : format_bytes(total) + (cache_ == CacheMode::keep ? " are under" : " are over") +
                       " half of the available memory (" + format_bytes(*available) + ")";
}

std::shared_ptr<Engine> Source::engine() {
  const std::lock_guard lock(mutex_);
  if (!engine_) engine_ = open_engine(files_, {.cache = cache_, .allow_memory = false}, budget_);
  return engine_;
}

std::shared_ptr<Engine> Source::engine_for(const std::vector<Budget::Entry>& needs) {
  std::uint64_t bytes = 0;
  for (const Budget::Entry& need : needs) bytes += need.bytes;
  {
    const std::lock_guard lock(mutex_);
    const bool own_choice = description_->options.engine == EngineKind::automatic;
    // While others use it too, nothing would come back.
    const bool gives_room = engine_ && engine_->holds_data() && engine_.use_count() == 1;
    if (own_choice && gives_room && budget_.free_bytes() < bytes) {
      const Traffic traffic = engine_->traffic();
      past_.bytes_read += traffic.bytes_read;
      past_.reads += traffic.reads;
      past_.merged += traffic.merged;
      engine_.reset();
    }
  }
  return engine();
}

void Source::read(std::span<const Read> reads) {
  if (reads.empty()) return;
  std::uint64_t bytes = 0;
  for (const Read& read : reads) bytes += read.from.size_bytes;
  const std::uint64_t before = now_ns();
  const Outcome outcome = engine()->read(reads);
  count_delivered(bytes, now_ns() - before);
  if (outcome.ok()) return;
  const Read& failed = reads[outcome.read];
  throw_outcome(outcome, failed, rows().path(failed.from.shard), "");
}

void Source::count_delivered(std::uint64_t bytes, std::uint64_t wait_ns) {
  bytes_asked_.fetch_add(bytes, std::memory_order_relaxed);
  wait_ns_.fetch_add(wait_ns, std::memory_order_relaxed);
}

void Source::watch(std::shared_ptr<const Pool> pool) {
  const std::lock_guard lock(mutex_);
  std::erase_if(pools_, [](const auto& known) { return known.expired(); });
  pools_.push_back(std::move(pool));
}

std::string Source::layout_text() const {
  if (rows().parts() == 1) return "C";
  return "F: the elements of a row lie a column apart, so gathering rows reads up to all of " +
         format_bytes(rows().data_bytes()) + " for each look-ahead";
}

Stats Source::stats() {
  const std::shared_ptr<Engine> engine = this->engine();
  const Traffic traffic = engine->traffic();
  const std::lock_guard lock(mutex_);
  Stats stats;
  stats.bytes_asked = bytes_asked_.load(std::memory_order_relaxed);
  stats.wait_ns = wait_ns_.load(std::memory_order_relaxed);
  stats.bytes_read = past_.bytes_read + traffic.bytes_read;
  stats.reads = past_.reads + traffic.reads;
  stats.merged = past_.merged + traffic.merged;
  stats.gap_bytes = engine->prospect().gap_bytes;
  stats.engine = engine->name();
  stats.engine_reason = engine->reason();
  stats.cache = cache_ == CacheMode::keep ? "keep" : "drop";
  stats.cache_reason = cache_reason_;
  stats.layout = layout_text();
  stats.memory_limit_bytes = budget_.limit_bytes();
  for (const Budget::Entry& claim : budget_.claims())
    stats.memory_claims.emplace_back(claim.what, claim.bytes);
  for (const auto& known : pools_) {
    if (const auto pool = known.lock()) stats.held_by_you_bytes += pool->held_bytes();
  }
  return stats;
}

}  // namespace lowtide
