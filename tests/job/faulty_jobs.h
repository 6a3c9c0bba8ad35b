// faulty_jobs.h - small jobs with trouble at every one of their system calls.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "job/shuffled.h"
#include "lowtide/jobs.h"
#include "writer/faulty_calls.h"

namespace lowtide {

inline constexpr std::uint64_t kFaultyRows = 300;
inline constexpr std::uint64_t kFaultyRowBytes = 100;

// All files below a folder with their contents, without what is hidden.
inline std::string tree_text(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return file_text(path);
  std::string all;
  for (const std::string& name : names_in(path))
    all += name + "=" + tree_text(path + "/" + name) + ";";
  return all;
}

struct FaultyJob {
  std::string to;             // what appears
  std::function<void()> run;  // plans and runs it
};

// After any trouble the destination has its old contents or all of the new ones, and the same call
// then completes the job and leaves nothing else.
inline void expect_whole(const TempFolder& folder, const FaultyJob& job,
                         const std::function<void()>& prepare) {
  std::filesystem::remove_all(job.to);
  job.run();
  const std::string fresh = tree_text(job.to);
  std::filesystem::remove_all(job.to);
  prepare();
  const std::string old = tree_text(job.to);
  ASSERT_NE(old, fresh);
  expect_all_or_nothing(
      folder.path(),
      [&] {
        for (const std::string& name : names_in(folder.path())) {
          if (name.starts_with('.')) std::filesystem::remove_all(folder / name);
        }
        std::filesystem::remove_all(job.to);
        prepare();
      },
      job.run,
      [&](bool whole) {
        const std::string now = tree_text(job.to);
        EXPECT_TRUE(now == fresh || (!whole && now == old)) << now.substr(0, 100);
      });
}

inline Plan small_shuffle(const TempFolder& folder, const std::string& to, std::uint64_t shards) {
  return plan_shuffle({.paths = {folder / "a.npy"}}, folder / to,
                      {.seed = 4, .shards = shards, .memory_bytes = 1 << 20, .overwrite = true});
}

inline void write_small_source(const TempFolder& folder) {
  folder.write("a.npy", npy_text("|u1", {kFaultyRows, kFaultyRowBytes},
                                 pattern(kFaultyRows * kFaultyRowBytes)));
}

}  // namespace lowtide
