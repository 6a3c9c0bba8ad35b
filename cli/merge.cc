#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "jobs.h"
#include "verb.h"

namespace lowtide::cli {

Action add_merge(CLI::App& app) {
  const auto words = add_several_in(app);
  add_job_options(app, words.get(), "--format");
  return [words](const Call&) {
    const MergeOptions options{.memory_bytes = job_memory(*words), .overwrite = words->overwrite};
    return run_job(*words, [&] {
      std::vector<JobSource> sources;
      for (const std::string& path : words->source.files) {
        sources.push_back(job_source(path, *words));
      }
      return plan_merge(sources, words->output, options);
    });
  };
}

}  // namespace lowtide::cli
