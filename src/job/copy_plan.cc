#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <utility>

#include "core/budget.h"
#include "core/checked.h"
#include "core/quote.h"
#include "core/token_type.h"
#include "format/array_header.h"
#include "format/descr.h"
#include "format/registry.h"
#include "http/local_path.h"
#include "job/copy.h"
#include "job/plan.h"
#include "lowtide/bytes.h"
#include "lowtide/token_writer.h"
#include "token_format/token_output.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kCopyKiB = 1024;
constexpr std::uint64_t kCopyMiB = 1024 * kCopyKiB;

std::uint64_t block_of(std::uint64_t bytes, std::uint64_t least, std::uint64_t most) {
  return round_down(std::clamp(bytes, least, most), 4096);
}

std::vector<Budget::Entry> copy_entries(const Copy& copy, const CopyMemory& sizes) {
  const bool index = copy.kind == CopyKind::sequences;
  std::vector<Budget::Entry> entries{{.what = "reading the source", .bytes = sizes.source_bytes},
                                     {.what = "a block of the source", .bytes = sizes.block_bytes}};
  if (copy.kind == CopyKind::tokens) {
    entries.push_back({.what = "the token writer", .bytes = sizes.token_writer_bytes});
  } else {
    entries.push_back({.what = "write buffers", .bytes = 2 * sizes.output_bytes});
    entries.push_back(
        {.what = "dirty pages", .bytes = (index ? 2 : 1) * 3 * sizes.dirty_chunk_bytes});
  }
  return entries;
}

class CopyPlan final : public Plan::Impl {
 public:
  CopyPlan(Facts identity, const Destination& destination) {
    settle(std::move(identity), destination);
    read_facts();
  }
  explicit CopyPlan(Facts all) {
    settle(std::move(all));
    read_facts();
  }

  [[nodiscard]] std::vector<std::string> inputs(std::size_t, std::size_t) const override {
    std::vector<std::string> paths;
    for (const JobSource& source : copy_.sources) {
      for (std::string& path : given_paths(source)) paths.push_back(std::move(path));
    }
    return paths;
  }
  [[nodiscard]] std::vector<std::string> outputs(std::size_t, std::size_t) const override {
    std::vector<std::string> paths{copy_.destination.path};
    if (copy_.kind != CopyKind::tokens && copy_.kind != CopyKind::sequences) return paths;
    const TokenTarget target = token_target(copy_.destination.path, copy_.format, copy_.dtype);
    if (!target.index_path.empty()) paths.push_back(target.index_path);
    return paths;
  }
  [[nodiscard]] std::uint64_t task_bytes(std::size_t, std::size_t) const override {
    return copy_.total_bytes;
  }
  void run(std::size_t, std::size_t, std::uint64_t memory, JobWatch& watch) const override {
    const CopyMemory sizes = copy_memory(copy_, memory);
    Budget budget(memory);
    const std::vector<Claim> claims = budget.claim_all(copy_entries(copy_, sizes));
    if (copy_.kind == CopyKind::arrays) {
      copy_arrays(copy_, sizes, watch);
    } else if (copy_.kind == CopyKind::sequences) {
      copy_sequences(copy_, sizes, watch);
    } else {
      copy_tokens(copy_, sizes, watch);
    }
  }

 private:
  void read_facts() {
    copy_.kind = static_cast<CopyKind>(facts.number("kind"));
    for (std::uint64_t i = 0; i < facts.number("sources"); ++i) {
      const std::string prefix = "source." + std::to_string(i) + ".";
      copy_.sources.push_back(source_of(facts, prefix));
      copy_.stamps.push_back(facts.number(prefix + "stamp"));
    }
    copy_.format = facts.at("format");
    copy_.dtype = parse_descr(facts.at("dtype"));
    for (const std::string& axis : facts.all("axis"))
      copy_.shape.push_back(parse_number("axis", axis));
    copy_.total_bytes = facts.number("total_bytes");
    copy_.destination = folder.destination();
    copy_.job = folder.hash();
    stages = {{verb, 1}};
  }

  Copy copy_;
};

// Gathers what a copy is about while its sources are looked at, one after the other.
class CopyPlanner {
 public:
  CopyPlanner(std::string verb, std::uint64_t memory_bytes)
      : verb_(std::move(verb)), memory_bytes_(job_memory(memory_bytes)) {}

  // `look` sees each source.
  template <typename Look>
  void open_all(std::span<const JobSource> sources, Look look) {
    for (const JobSource& source : sources) {
      if (!source.offsets.empty())
        throw std::invalid_argument(
            verb_ + ": ragged rows cannot be written as one array; pass their values");
      const OpenSource opened = open_source(source, std::max(memory_bytes_, kLeastSourceBytes));
      for (std::string& file : opened.files()) files_.push_back(std::move(file));
      copy.stamps.push_back(opened.stamp());
      copy.sources.push_back(source);
      look(opened);
    }
  }

  [[nodiscard]] Plan plan(const std::string& path, bool overwrite, std::uint64_t result_bytes) {
    copy.destination = Destination::plan(path, /*folder=*/false, overwrite, files_);
    const auto enough = [this](std::uint64_t memory) {
      return sum_of(copy_entries(copy, copy_memory(copy, memory))) <= memory;
    };
    if (!enough(memory_bytes_))
      refuse_limit(memory_bytes_, verb_ + " " + format_bytes(copy.total_bytes), enough);
    Facts facts;
    facts.add("verb", verb_);
    facts.add("kind", static_cast<std::uint64_t>(copy.kind));
    facts.add("sources", copy.sources.size());
    for (std::size_t i = 0; i < copy.sources.size(); ++i) {
      const std::string prefix = "source." + std::to_string(i) + ".";
      add_source(copy.sources[i], prefix, &facts);
      facts.add(prefix + "stamp", copy.stamps[i]);
    }
    facts.add("format", copy.format);
    facts.add("dtype", copy.dtype.descr());
    for (const std::uint64_t axis : copy.shape) facts.add("axis", axis);
    facts.add("total_bytes", copy.total_bytes);
    facts.add("memory", memory_bytes_);
    copy.destination.add_to(&facts);
    facts.add("result.bytes", result_bytes);
    auto plan = std::make_shared<CopyPlan>(std::move(facts), copy.destination);
    plan->require_free();
    return Plan(std::move(plan));
  }

  Copy copy;

 private:
  const std::string verb_;
  const std::uint64_t memory_bytes_;
  std::vector<std::string> files_;
};

std::uint64_t array_file_bytes(const Copy& copy, const std::string& path) {
  std::uint64_t bytes = copy.dtype.itemsize_bytes;
  for (const std::uint64_t axis : copy.shape) bytes *= axis;
  if (!has_header(copy.format)) return bytes;
  check_array_name(path);
  return bytes + ArrayHeader(copy.dtype, copy.shape, false, path).size_bytes();
}

std::uint64_t token_file_bytes(const Copy& copy, const std::string& path, std::uint64_t tokens) {
  const TokenTarget target = token_target(path, copy.format, copy.dtype);
  return target.output->header_bytes + tokens * copy.dtype.itemsize_bytes;
}

}  // namespace

CopyMemory copy_memory(const Copy& copy, std::uint64_t memory_bytes) {
  CopyMemory sizes{};
  const bool rows = copy.kind == CopyKind::arrays;
  std::uint64_t row_bytes = copy.dtype.itemsize_bytes;
  for (std::size_t axis = 1; axis < copy.shape.size(); ++axis) row_bytes *= copy.shape[axis];
  sizes.source_bytes = std::clamp(memory_bytes / 4, kLeastSourceBytes, 64 * kCopyMiB);
  if (rows) sizes.source_bytes = std::max(sizes.source_bytes, row_bytes + kLeastSourceBytes);
  sizes.block_bytes = block_of(memory_bytes / 8, 64 * kCopyKiB, 16 * kCopyMiB);
  if (rows) sizes.block_bytes = std::max(sizes.block_bytes, row_bytes);
  sizes.output_bytes = block_of(memory_bytes / 16, 64 * kCopyKiB, 4 * kCopyMiB);
  sizes.dirty_chunk_bytes = block_of(memory_bytes / 64, 16 * kCopyKiB, 4 * kCopyMiB);
  sizes.token_writer_bytes = std::clamp(memory_bytes / 4, 256 * kCopyKiB, 64 * kCopyMiB);
  return sizes;
}

std::shared_ptr<const Plan::Impl> copy_of(Facts facts) {
  return std::make_shared<CopyPlan>(std::move(facts));
}

Plan plan_convert(const JobSource& source, const std::string& path, const ConvertOptions& options) {
  require_local(path, kWritesLocal);
  CopyPlanner planner("convert", options.memory_bytes);
  Copy& copy = planner.copy;
  copy.format = options.format;
  const bool to_array = can_write_arrays(options.format);
  std::uint64_t items = 0;
  planner.open_all({&source, 1}, [&](const OpenSource& opened) {
    const DType from = opened.tokens ? opened.tokens->dtype() : opened.array->dtype();
    copy.dtype = options.dtype ? parse_descr(*options.dtype) : from;
    if (opened.tokens) {
      items = opened.tokens->size();
      copy.shape = {items};
    } else {
      copy.shape = opened.array->shape();
      items = copy.shape.empty() ? 1 : copy.shape[0];
    }
    // An unknown word, or a name that the format does not have.
    if (!to_array)
      (void)token_target(path, copy.format, token_type(from) ? copy.dtype : DType::parse("uint16"));
    const bool one_axis = copy.shape.size() == 1;
    const bool integers = token_type(from) && token_type(copy.dtype) && one_axis;
    if (!to_array && !integers) {
      throw std::invalid_argument("convert: tokens are made of integers on one axis, not of " +
                                  from.descr() + " on " + std::to_string(copy.shape.size()) +
                                  " axes");
    }
    if (to_array && !integers && copy.dtype != from) {
      throw std::invalid_argument(
          "dtype: only integers on one axis can be converted to another type; this is " +
          from.descr() + " on " + std::to_string(copy.shape.size()) + " axes");
    }
    if (copy.shape.empty()) throw std::invalid_argument("convert: the array has no axes");
    copy.kind = !to_array                                         ? CopyKind::tokens
                : opened.tokens.has_value() || copy.dtype != from ? CopyKind::integers
                                                                  : CopyKind::arrays;
    copy.total_bytes = opened.tokens ? items * from.itemsize_bytes
                                     : opened.array->rows() * opened.array->row_bytes();
  });
  const std::uint64_t bytes =
      to_array ? array_file_bytes(copy, path) : token_file_bytes(copy, path, items);
  return planner.plan(path, options.overwrite, bytes);
}

Plan plan_merge(std::span<const JobSource> sources, const std::string& path,
                const MergeOptions& options) {
  if (sources.empty()) throw std::invalid_argument("merge: the list of sources is empty");
  require_local(path, kWritesLocal);
  CopyPlanner planner("merge", options.memory_bytes);
  Copy& copy = planner.copy;
  std::uint64_t tokens = 0;
  bool first = true;
  const auto expect = [&](bool same, const std::string& what, const OpenSource& opened,
                          const std::string& values = "") {
    if (first || same) return;
    throw std::invalid_argument("merge: " + opened.files().front() +
                                " differs from the first source in its " + what + values);
  };
  const auto found = [](const std::string& here, const std::string& there) {
    return ": " + here + ", not " + there;
  };
  planner.open_all(sources, [&](const OpenSource& opened) {
    if (opened.tokens) {
      expect(copy.kind != CopyKind::arrays, "kind of data", opened);
      expect(copy.format == opened.tokens->format(), "format", opened,
             found(opened.tokens->format(), copy.format));
      expect(copy.dtype == opened.tokens->dtype(), "dtype", opened,
             found(opened.tokens->dtype().descr(), copy.dtype.descr()));
      copy.format = opened.tokens->format();
      copy.dtype = opened.tokens->dtype();
      const bool recorded = opened.tokens->documents().has_value();
      const CopyKind kind = can_write_arrays(copy.format) ? CopyKind::integers
                            : recorded                    ? CopyKind::sequences
                                                          : CopyKind::tokens;
      expect(copy.kind == kind, "way of recording documents", opened);
      copy.kind = kind;
      tokens += opened.tokens->size();
      copy.shape = {tokens};
      copy.total_bytes = tokens * copy.dtype.itemsize_bytes;
    } else {
      std::vector<std::uint64_t> shape = opened.array->shape();
      if (shape.empty()) throw std::invalid_argument("merge: an array without axes has no rows");
      expect(copy.kind == CopyKind::arrays, "kind of data", opened);
      expect(copy.dtype == opened.array->dtype(), "dtype", opened,
             found(opened.array->dtype().descr(), copy.dtype.descr()));
      const std::uint64_t before = first ? 0 : copy.shape[0];
      expect(std::equal(shape.begin() + 1, shape.end(), copy.shape.begin() + (first ? 0 : 1),
                        copy.shape.end()),
             "row shape", opened,
             found(shape_text(std::span(shape).subspan(1)),
                   first ? "" : shape_text(std::span(copy.shape).subspan(1))));
      copy.kind = CopyKind::arrays;
      copy.dtype = opened.array->dtype();
      copy.format = array_header_word();
      shape[0] += before;
      copy.shape = shape;
      copy.total_bytes += opened.array->rows() * opened.array->row_bytes();
    }
    first = false;
  });
  const bool to_array = copy.kind == CopyKind::arrays || copy.kind == CopyKind::integers;
  const std::uint64_t bytes =
      to_array ? array_file_bytes(copy, path) : token_file_bytes(copy, path, tokens);
  return planner.plan(path, options.overwrite, bytes);
}

}  // namespace lowtide
