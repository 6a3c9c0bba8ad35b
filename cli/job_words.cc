#include "job_words.h"

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "lowtide/info.h"

namespace lowtide::cli {

std::shared_ptr<JobWords> add_in_and_out(CLI::App& app) {
  auto words = std::make_shared<JobWords>();
  app.add_option("IN", words->input,
                 "A file, a folder or a quoted pattern; its files form one data set")
      ->required()
      ->type_name("");
  app.add_option("OUT", words->output, "The new file, or the new folder")
      ->required()
      ->type_name("");
  return words;
}

std::shared_ptr<JobWords> add_several_in(CLI::App& app) {
  auto words = std::make_shared<JobWords>();
  app.add_option("IN", words->source.files, "Files, folders or quoted patterns, in this order")
      ->required()
      ->type_name("");
  app.add_option("-o,--output", words->output, "The new file")->required()->type_name("FILE");
  return words;
}

void add_job_options(CLI::App& app, JobWords* words, const char* format_option) {
  add_layout_words(app, &words->source, format_option);
  app.add_option("--eot", words->eot,
                 "Token between documents, if IN does not store where they end")
      ->type_name("N");
  app.add_option("--memory", words->memory, "The memory budget, such as 1GiB")->type_name("SIZE");
  app.add_flag("--overwrite", words->overwrite, "Replace OUT if it exists");
  CLI::Option* const plan = app.add_flag(
      "--plan", words->plan, "Show the stages, their tasks and which are done; run nothing");
  app.add_option("--stage", words->stage, "With --task: the stage, by name or number")
      ->type_name("STAGE")
      ->excludes(plan);
  app.add_option("--task", words->task,
                 "Run only task K of the N tasks of a stage, counted from 0, such as 3/64")
      ->type_name("K/N")
      ->excludes(plan);
  app.add_flag("--json", words->source.json, "Print one JSON object instead of text");
}

JobSource job_source(const std::string& path, const JobWords& words) {
  const InfoOptions given = info_options(words.source);
  JobSource source{.paths = {path}};
  source.tokens = info(path, given).kind == FileKind::tokens;
  source.array = {.dtype = given.dtype,
                  .shape = given.shape,
                  .offset_bytes = given.offset_bytes,
                  .fortran_order = given.fortran_order,
                  .key = given.key};
  source.token_options = {.dtype = given.dtype, .format = given.format, .key = given.key};
  if (!words.eot.empty()) source.token_options.eot = parse_count(words.eot, "--eot");
  if (source.token_options.eot && !source.tokens) {
    throw std::invalid_argument("--eot is for tokens, but " + path + " is an array");
  }
  return source;
}

std::uint64_t job_memory(const JobWords& words) {
  return words.memory.empty() ? 0 : parse_size(words.memory, "--memory");
}

}  // namespace lowtide::cli
