#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "jobs.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

struct ShuffleWords {
  std::string unit = "row";
  std::string block_size, seed, shards;
};

ShuffleOptions shuffle_options(const JobWords& words, const ShuffleWords& more) {
  ShuffleOptions options;
  options.unit = parse_unit(more.unit);
  if (!more.block_size.empty()) options.block_size = parse_count(more.block_size, "--block-size");
  if (!more.seed.empty()) options.seed = parse_count(more.seed, "--seed");
  if (!more.shards.empty()) options.shards = parse_count(more.shards, "--shards");
  options.memory_bytes = job_memory(words);
  options.overwrite = words.overwrite;
  return options;
}

}  // namespace

Action add_shuffle(CLI::App& app) {
  const auto words = add_in_and_out(app);
  const auto more = std::make_shared<ShuffleWords>();
  app.add_option("--unit", more->unit, "What is shuffled: row (the default), document or window")
      ->type_name("UNIT");
  app.add_option("--block-size", more->block_size, "Tokens per window, such as 1024")
      ->type_name("N");
  app.add_option("--seed", more->seed, "Seed of the order (default: 0)")->type_name("N");
  app.add_option("--shards", more->shards, "Number of files (default: 1); above 1, OUT is a folder")
      ->type_name("N");
  add_job_options(app, words.get(), "--format");
  return [words, more](const Call&) {
    const ShuffleOptions options = shuffle_options(*words, *more);
    return run_job(*words, [&] {
      return plan_shuffle(job_source(words->input, *words), words->output, options);
    });
  };
}

}  // namespace lowtide::cli
