#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "jobs.h"
#include "lowtide/command/build.h"
#include "terminal.h"
#include "verb.h"

namespace lowtide::cli {
namespace {

struct ConvertWords {
  std::string format, dtype;
};

}  // namespace

Action add_convert(CLI::App& app) {
  const auto words = add_in_and_out(app);
  const auto more = std::make_shared<ConvertWords>();
  app.add_option("--format", more->format, "Format of OUT: " + either(output_format_words()))
      ->required()
      ->type_name("WORD");
  app.add_option("--to-dtype", more->dtype,
                 "Integer type of OUT, if different from IN, such as uint32")
      ->type_name("TYPE");
  add_job_options(app, words.get(), "--from");
  return [words, more](const Call&) {
    ConvertOptions options{.format = more->format};
    if (!more->dtype.empty()) options.dtype = more->dtype;
    options.memory_bytes = job_memory(*words);
    options.overwrite = words->overwrite;
    return run_job(*words, [&] {
      return plan_convert(job_source(words->input, *words), words->output, options);
    });
  };
}

}  // namespace lowtide::cli
