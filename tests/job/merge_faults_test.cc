// Small merges, with trouble at every one of their system calls.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "job/faulty_jobs.h"
#include "lowtide/token_writer.h"

namespace lowtide::merge_faults_test {
namespace {

TEST(MergeFaults, LeaveNothingHalfMergedUnderItsName) {
  const QuickSyncs quick;
  const TempFolder folder;
  folder.write("a1.npy", npy_text("|u1", {3000}, pattern(3000)));
  folder.write("a2.npy", npy_text("|u1", {5000}, pattern(5000, 2)));
  const std::vector<JobSource> sources{{.paths = {folder / "a1.npy"}},
                                       {.paths = {folder / "a2.npy"}}};
  expect_whole(
      folder,
      {folder / "m.npy",
       [&] {
         plan_merge(sources, folder / "m.npy", {.memory_bytes = 2 << 20, .overwrite = true}).run();
       }},
      [&] { folder.write("m.npy", "old"); });
}

TEST(MergeFaults, NeverLeaveAMergedIndexWithoutItsData) {
  const QuickSyncs quick;
  const TempFolder folder;
  std::vector<JobSource> sources;
  for (const std::string name : {"a.bin", "b.bin"}) {
    TokenWriter writer =
        TokenWriter::create(folder / name, {.format = "megatron", .dtype = "uint16"});
    for (std::uint16_t i = 0; i < 5; ++i) writer.append(std::vector<std::uint16_t>(100 + i, i));
    writer.close();
    sources.push_back({.paths = {folder / name}, .tokens = true});
  }
  const auto merge = [&] {
    plan_merge(sources, folder / "m.bin", {.memory_bytes = 1 << 20, .overwrite = true}).run();
  };
  merge();
  const std::string data = file_text(folder / "m.bin");
  const std::string index = file_text(folder / "m.idx");
  expect_all_or_nothing(
      folder.path(),
      [&] {
        for (const std::string& name : names_in(folder.path())) {
          if (name.starts_with('.') || name.starts_with('m'))
            std::filesystem::remove(folder / name);
        }
      },
      merge,
      [&](bool whole) {
        const std::string now = file_text(folder / "m.idx");
        EXPECT_TRUE((now == index && file_text(folder / "m.bin") == data) ||
                    (!whole && now == "(none)"));
      });
}

}  // namespace
}  // namespace lowtide::merge_faults_test
