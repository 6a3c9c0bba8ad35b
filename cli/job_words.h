// job_words.h - the words of the verbs that rewrite data: what they read, how, and with what.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "files.h"
#include "lowtide/jobs.h"

namespace CLI {
class App;
}

namespace lowtide::cli {

struct JobWords {
  FileWords source;  // how to open what is read; `files` if it can be several
  std::string input, output;
  std::string eot;
  std::string memory;
  std::string stage, task;
  bool overwrite = false;
  bool plan = false;
};

// IN OUT.
[[nodiscard]] std::shared_ptr<JobWords> add_in_and_out(CLI::App& app);
// IN... -o OUT.
[[nodiscard]] std::shared_ptr<JobWords> add_several_in(CLI::App& app);
// How to open IN, and --memory, --overwrite, --plan, --stage, --task, --json. `format_option` says
// which format IN has.
void add_job_options(CLI::App& app, JobWords* words, const char* format_option);

// An array or tokens, by the rules of InfoOptions::kind. Throws what info() throws.
[[nodiscard]] JobSource job_source(const std::string& path, const JobWords& words);
// 0 if none was given. Throws a std::invalid_argument that names the option.
[[nodiscard]] std::uint64_t job_memory(const JobWords& words);

}  // namespace lowtide::cli
