// A small write of each token format, with trouble at every one of its system calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "lowtide/token_writer.h"
#include "os/temp_folder.h"
#include "token_format/token_output.h"
#include "writer/faulty_calls.h"
#include "writer/published_pair.h"

namespace lowtide::token_writer_faults_test {
namespace {

using Contents = std::vector<std::string>;

struct Case {
  std::string format;
  std::string name;
};

TokenTarget target_of(const TempFolder& folder, const Case& one) {
  return token_target(folder / one.name, one.format, DType::parse("uint16"));
}

Contents contents_of(const TokenTarget& target) {
  Contents all{file_text(target.data_path)};
  if (!target.index_path.empty()) all.push_back(file_text(target.index_path));
  return all;
}

// By default longer than the buffer, so that the first bytes are written before the header is
// known.
void write_tokens(const TokenTarget& target, std::uint16_t first_id, std::size_t documents,
                  std::size_t length = 4000) {
  TokenWriter writer = TokenWriter::create(
      target.data_path, {.format = target.format, .dtype = "uint16", .memory_bytes = 128 << 10});
  for (std::size_t i = 0; i < documents; ++i) {
    writer.append(std::vector<std::uint16_t>(length + i, static_cast<std::uint16_t>(first_id + i)));
  }
  writer.close();
}

void expect_no_half_file(const Case& one, bool has_old) {
  SCOPED_TRACE(one.format + (has_old ? " over an old file" : ""));
  const TempFolder folder;
  const TokenTarget target = target_of(folder, one);
  const bool pair = !target.index_path.empty();
  write_tokens(target, 1000, 3);
  const Contents fresh = contents_of(target);
  write_tokens(target, 1, 2, 5);
  const Contents old = has_old ? contents_of(target) : Contents(fresh.size(), "(none)");
  const auto prepare = [&] {
    for (const std::string& name : names_in(folder.path())) std::filesystem::remove(folder / name);
    if (has_old) write_tokens(target, 1, 2, 5);
  };
  expect_all_or_nothing(
      folder.path(), prepare, [&] { write_tokens(target, 1000, 3); },
      [&](bool whole) {
        Contents now = contents_of(target);
        if (whole) {
          EXPECT_TRUE(now == fresh);
          return;
        }
        if (pair && has_old && now[1] == "(none)") {
          // Killed between the two renames: never an index beside data of another time.
          EXPECT_GT(names_in(folder.path()).size(), 1u);
          recover_pair(target.data_path, target.index_path);
          now = contents_of(target);
        } else if (pair && now[1] == "(none)") {
          now[0] = now[0] == fresh[0] ? "(none)" : now[0];  // likewise: data without an index
        }
        EXPECT_TRUE(now == old || now == fresh);
      });
}

TEST(TokenWriterFaults, LeaveTheOldFilesOrTheWholeNewOnes) {
  const QuickSyncs quick;
  for (const Case& one :
       {Case{"nanogpt", "t.bin"}, Case{"llmc", "t.bin"}, Case{"megatron", "t.bin"},
        Case{"olmo", "t.npy"}, Case{"datatrove", "t.ds"}}) {
    expect_no_half_file(one, /*has_old=*/true);
    if (HasFailure()) return;
  }
  expect_no_half_file({"megatron", "t.bin"}, /*has_old=*/false);
}

TEST(TokenWriterFaults, WithoutLinksKeepTheOrderOfTheRenames) {
  const QuickSyncs quick;
  const TempFolder folder;
  const TokenTarget target = target_of(folder, {"megatron", "t.bin"});
  write_tokens(target, 1, 2, 5);
  const sys::Fault no_links(
      sys::table.link, +[](const char*, const char*) {
        errno = EPERM;
        return -1;
      });
  const Contents old = contents_of(target);
  write_tokens(target, 1000, 3);
  const Contents fresh = contents_of(target);
  write_tokens(target, 1, 2, 5);
  std::size_t count = 0;
  {
    const FaultyCalls calls;
    write_tokens(target, 1000, 3);
    count = FaultyCalls::log().size();
  }
  for (int at = 0; at < static_cast<int>(count); ++at) {
    SCOPED_TRACE(at);
    write_tokens(target, 1, 2, 5);
    EXPECT_NE(in_trouble(Trouble::kill, at, [&] { write_tokens(target, 1000, 3); }), 1);
    recover_pair(target.data_path, target.index_path);
    const Contents now = contents_of(target);
    EXPECT_TRUE(now == old || now == fresh);
    if (HasFailure()) return;
  }
}

TEST(TokenWriterFaults, MakeTheFilesDurableBeforeTheirNames) {
  const TempFolder folder;
  const TokenTarget target = target_of(folder, {"megatron", "t.bin"});
  write_tokens(target, 1, 2, 5);
  const FaultyCalls calls;
  write_tokens(target, 1000, 3);
  std::string order;  // without what does not matter here
  for (const std::string& call : FaultyCalls::log()) {
    if (call == "fsync" || call == "fdatasync") order += "s";
    if (call == "link") order += "l";
    if (call == "rename") order += "r";
  }
  // Both files, old index aside, folder, data, folder, index, folder; syncs may come twice.
  EXPECT_EQ(order.substr(0, 2), "ss") << order;
  EXPECT_EQ(order.find('r'), order.find('l') + 1) << order;
  EXPECT_EQ(std::count(order.begin(), order.end(), 'r'), 3) << order;
  for (std::size_t at = 0; at + 1 < order.size(); ++at) {
    EXPECT_TRUE(order[at] != 'r' || order[at + 1] == 's') << order;
  }
}

}  // namespace
}  // namespace lowtide::token_writer_faults_test
