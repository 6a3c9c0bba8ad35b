// doctor.h - the facts of lowtide/doctor.h, by topic. Each reads only below the given root.
#pragma once

#include <string>
#include <vector>

#include "lowtide/command/doctor.h"
#include "system/limits.h"

namespace lowtide {

using Facts = std::vector<Fact>;

// Like examine(options), but with the caller's /proc and /sys.
[[nodiscard]] Facts examine(const DoctorOptions& options, const SystemRoot& root);

// What this build is and has.
[[nodiscard]] Fact build_fact(const DoctorOptions& options);
// Kernel, io_uring and cachestat.
void add_kernel_facts(const SystemRoot& root, Facts* facts);
// Memory, its limits, and the limits of this process.
void add_memory_facts(const DoctorOptions& options, const SystemRoot& root, Facts* facts);
// The path, the storage below it, and how it can be read.
void add_path_facts(const std::string& path, const SystemRoot& root, Facts* facts);
// What Lowtide chooses, and why.
[[nodiscard]] Fact choice_fact(const DoctorOptions& options);

[[nodiscard]] Fact unknown_fact(std::string name, std::string detail, std::string advice = "");

}  // namespace lowtide
