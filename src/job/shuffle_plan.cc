#include <array>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/quote.h"
#include "engine/engine.h"
#include "format/array_header.h"
#include "http/local_path.h"
#include "job/plan.h"
#include "job/shuffle.h"
#include "os/paths.h"
#include "token_format/token_output.h"
#include "token_format/tokens.h"

namespace lowtide {
namespace {

constexpr std::array<std::string_view, 3> kUnitWords{"row", "document", "window"};
constexpr std::uint64_t kGoodChunkBytes = 16 * 1024;
constexpr std::uint64_t kMostThreads = 4;  // more would wait for the disk, and divide the memory

std::string part_name(std::uint64_t shard, std::uint64_t shards, std::string_view suffix) {
  const auto digits = [](std::uint64_t number) {
    std::string text = std::to_string(number);
    return text.insert(0, 5 - std::min<std::size_t>(5, text.size()), '0');
  };
  return "part-" + digits(shard) + "-of-" + digits(shards) + std::string(suffix);
}

std::string index_of_part(const std::string& path, const std::string& format) {
  if (format.empty()) return "";
  return token_target(path, format, DType::parse("uint16")).index_path;
}

Shuffle shuffle_from(const Facts& facts, JobFolder folder) {
  Shuffle shuffle;
  shuffle.source = source_of(facts, "source.");
  shuffle.stamp = facts.number("source.stamp");
  shuffle.unit = parse_unit(facts.at("unit"));
  shuffle.block_size = facts.number("block_size");
  shuffle.seed = facts.number("seed");
  shuffle.memory_bytes = facts.number("memory");
  shuffle.shape = {.units = facts.number("units"),
                   .ragged = facts.number("ragged") != 0,
                   .item_bytes = facts.number("item_bytes"),
                   .total_bytes = facts.number("total_bytes"),
                   .largest_bytes = facts.number("largest_bytes"),
                   .cuts = std::nullopt};
  if (const std::string* const cuts = facts.find("cuts")) shuffle.shape.cuts = Cuts::parse(*cuts);
  shuffle.splits = facts.number("splits");
  shuffle.buckets = {.positions = shuffle.shape.units,
                     .shards = facts.number("shards"),
                     .bucket_units = facts.number("bucket_units")};
  shuffle.suffix = facts.at("suffix");
  shuffle.format = facts.at("format");
  shuffle.folder = std::move(folder);
  if (shuffle.shards() == 0 || shuffle.buckets.bucket_units == 0 || shuffle.splits == 0 ||
      shuffle.shards() > shuffle.shape.units || shuffle.splits > shuffle.shape.units) {
    throw std::invalid_argument(
        "this is not the text of a plan: its numbers contradict each other");
  }
  return shuffle;
}

class ShufflePlan final : public Plan::Impl {
 public:
  ShufflePlan(Facts identity, const Destination& destination) {
    settle(std::move(identity), destination);
    make_stages();
  }
  explicit ShufflePlan(Facts all) {
    settle(std::move(all));
    make_stages();
  }

  [[nodiscard]] std::vector<std::string> inputs(std::size_t stage, std::size_t) const override {
    std::vector<std::string> paths = given_paths(shuffle_.source);
    if (stage == 0) return paths;
    for (std::uint64_t task = 0; task < shuffle_.splits; ++task)
      paths.push_back(shuffle_.run_path(task));
    return paths;
  }
  [[nodiscard]] std::vector<std::string> outputs(std::size_t stage,
                                                 std::size_t task) const override {
    if (stage == 0) return {shuffle_.run_path(task)};
    return shuffle_.parts(task, folder.destination().path);
  }
  [[nodiscard]] std::uint64_t task_bytes(std::size_t stage, std::size_t task) const override {
    return equal_part(shuffle_.shape.total_bytes, stages[stage].tasks, task).size();
  }
  [[nodiscard]] std::size_t width(std::size_t stage) const override;
  void run(std::size_t stage, std::size_t task, std::uint64_t memory,
           JobWatch& watch) const override {
    stage == 0 ? scatter(shuffle_, task, memory, watch) : gather(shuffle_, task, memory, watch);
  }

 private:
  void make_stages() {
    shuffle_ = shuffle_from(facts, folder);
    stages = {{"scatter", static_cast<std::size_t>(shuffle_.splits)},
              {"gather", static_cast<std::size_t>(shuffle_.shards())}};
  }

  Shuffle shuffle_;
};

std::size_t ShufflePlan::width(std::size_t stage) const {
  const std::uint64_t most = stage == 0 ? kMostThreads : 2;  // see kBucketShare
  std::uint64_t threads = std::clamp<std::uint64_t>(std::thread::hardware_concurrency(), 2, most);
  for (; threads > 1; --threads) {
    const std::uint64_t each = memory_bytes / threads;
    if (stage == 0) {
      const ScatterMemory sizes = scatter_memory(shuffle_, each);
      if (sum_of(sizes.entries(shuffle_)) <= each &&
          sizes.segment_bytes / shuffle_.buckets.count() >= kGoodChunkBytes) {
        break;
      }
    } else {
      const UnitShape& shape = shuffle_.shape;
      const std::uint64_t bucket =
          shuffle_.buckets.bucket_units * (shape.total_bytes / shape.units + shape.extra_bytes());
      const std::uint64_t needed = sum_of(gather_memory(shuffle_, each).entries(shuffle_)) +
                                   engine_buffers(each).bytes +
                                   std::max(bucket, 2 * shape.largest_bytes) + each / 16;
      if (needed <= each) break;
    }
  }
  return static_cast<std::size_t>(threads);
}

// How large the file of a result is that is one file.
std::uint64_t result_bytes(const OpenSource& source, const UnitShape& shape, Unit unit,
                           std::uint64_t block_size, const std::string& destination) {
  if (unit == Unit::document) {
    const DType& dtype = source.tokens->dtype();
    const TokenTarget target = token_target(destination, source.tokens->format(), dtype);
    return target.output->header_bytes + shape.total_bytes;
  }
  std::vector<std::uint64_t> axes{shape.units, block_size + 1};
  if (source.array) axes = source.array->shape();
  const DType& dtype = source.array ? source.array->dtype() : source.tokens->dtype();
  return ArrayHeader(dtype, axes, false, destination).size_bytes() + shape.total_bytes;
}

void check_shards(std::uint64_t shards, const UnitShape& shape, Unit unit) {
  if (shards == 0) throw std::invalid_argument("shards must be at least 1, not 0");
  if (shape.units == 0) {
    throw std::invalid_argument("the source has no " + std::string(unit_word(unit)) +
                                "s to shuffle");
  }
  if (shards <= shape.units) return;
  throw std::invalid_argument("shards: " + std::to_string(shards) + " are more than the " +
                              std::to_string(shape.units) + " " + std::string(unit_word(unit)) +
                              "s of the source");
}

}  // namespace

std::string_view unit_word(Unit unit) {
  return kUnitWords[static_cast<std::size_t>(unit)];
}

Unit parse_unit(std::string_view word) {
  for (std::size_t i = 0; i < kUnitWords.size(); ++i) {
    if (kUnitWords[i] == word) return static_cast<Unit>(i);
  }
  throw std::invalid_argument("unit: expected row, document or window, found " + excerpt(word));
}

std::vector<std::string> Shuffle::parts(std::uint64_t shard, const std::string& root) const {
  const std::string part = part_name(shard, shards(), suffix);
  if (!source.offsets.empty()) {
    if (shards() == 1) return {root + "/values" + suffix, root + "/offsets" + suffix};
    return {root + "/values/" + part, root + "/offsets/" + part};
  }
  std::vector<std::string> paths{makes_folder() ? root + "/" + part : root};
  const std::string index = index_of_part(paths[0], format);
  if (!index.empty()) paths.push_back(index);
  return paths;
}

void Shuffle::make_folders() const {
  if (!makes_folder()) return folder.make();
  if (source.offsets.empty() || shards() == 1) return folder.make({"result"});
  folder.make({"result", "result/values", "result/offsets"});
}

std::shared_ptr<const Plan::Impl> shuffle_of(Facts facts) {
  return std::make_shared<ShufflePlan>(std::move(facts));
}

Plan plan_shuffle(const JobSource& given, const std::string& path, const ShuffleOptions& options) {
  require_local(path, kWritesLocal);
  if (options.block_size != 0 && options.unit != Unit::window)
    throw std::invalid_argument("block_size is for windows, not for " +
                                std::string(unit_word(options.unit)) + "s");
  Shuffle shuffle;
  shuffle.memory_bytes = job_memory(options.memory_bytes);
  shuffle.unit = options.unit;
  shuffle.buckets.shards = options.shards;
  const OpenSource source = open_source(given, std::max(shuffle.memory_bytes, kLeastSourceBytes));
  const Units units(source, options.unit, options.block_size, nullptr);
  shuffle.shape = units.measure();
  shuffle.source = given;
  check_shards(options.shards, shuffle.shape, options.unit);
  const bool documents = options.unit == Unit::document;
  const std::string format = documents ? source.tokens->format() : "";
  if (!shuffle.makes_folder() && !documents) check_array_name(path);
  const Destination destination =
      Destination::plan(path, shuffle.makes_folder(), options.overwrite, source.files());
  divide(&shuffle);

  Facts facts;
  facts.add("verb", "shuffle");
  add_source(given, "source.", &facts);
  facts.add("source.stamp", source.stamp());
  destination.add_to(&facts);
  if (!destination.folder) {
    facts.add("result.bytes", result_bytes(source, shuffle.shape, options.unit, options.block_size,
                                           destination.path));
  }
  facts.add("unit", std::string(unit_word(options.unit)));
  facts.add("block_size", options.unit == Unit::window ? options.block_size : 0);
  facts.add("seed", options.seed);
  facts.add("shards", options.shards);
  facts.add("memory", shuffle.memory_bytes);
  facts.add("units", shuffle.shape.units);
  facts.add("ragged", shuffle.shape.ragged ? 1 : 0);
  facts.add("item_bytes", shuffle.shape.item_bytes);
  facts.add("total_bytes", shuffle.shape.total_bytes);
  facts.add("largest_bytes", shuffle.shape.largest_bytes);
  if (shuffle.shape.cuts) facts.add("cuts", shuffle.shape.cuts->text());
  facts.add("splits", shuffle.splits);
  facts.add("bucket_units", shuffle.buckets.bucket_units);
  facts.add("suffix", std::string(documents ? token_suffix(format) : array_suffix()));
  facts.add("format", format);
  auto plan = std::make_shared<ShufflePlan>(std::move(facts), destination);
  plan->require_free();
  return Plan(std::move(plan));
}

}  // namespace lowtide
