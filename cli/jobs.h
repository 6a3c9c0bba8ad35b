// jobs.h - how the verbs that rewrite data run a plan, or one task of it, and report on it.
#pragma once

#include <functional>

#include "job_words.h"
#include "lowtide/jobs.h"

namespace lowtide::cli {

// Makes the plan, then shows it, or runs one of its tasks or all of it, as the words say. Returns
// the exit code.
[[nodiscard]] int run_job(const JobWords& words, const std::function<Plan()>& make_plan);

}  // namespace lowtide::cli
