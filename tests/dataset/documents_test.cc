#include "dataset/documents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "os/sys.h"
#include "support/data_file.h"
#include "support/forked.h"
#include "support/token_files.h"

namespace lowtide::documents_test {
namespace {

using Offsets = std::vector<std::uint64_t>;
// The lengths of the sequences of each document of each pair.
using Pair = std::vector<std::vector<std::int32_t>>;

// Megatron pairs on disk, and where their documents start by counting.
struct DocumentsRig {
  explicit DocumentsRig(const std::vector<Pair>& pairs) {
    std::vector<std::string> index_paths;
    for (const Pair& pair : pairs) {
      MegatronIndex index;
      std::int64_t bytes = 0;
      for (const auto& document : pair) {
        index.boundaries.push_back(static_cast<std::int64_t>(index.lengths.size()));
        starts.push_back(tokens + static_cast<std::uint64_t>(bytes) / 2);
        for (const std::int32_t length : document) {
          index.lengths.push_back(length);
          index.pointers.push_back(bytes);
          bytes += length * 2;
        }
      }
      index.boundaries.push_back(static_cast<std::int64_t>(index.lengths.size()));
      tokens += static_cast<std::uint64_t>(bytes) / 2;
      const std::string name = "p" + std::to_string(layouts.size());
      const std::string text(static_cast<std::size_t>(bytes), '\1');
      memory.write(name + ".idx", index.bytes());
      memory.write(name + ".bin", text);
      index_paths.push_back(folder.write(name + ".idx", index.bytes()));
      layouts.push_back(memory.open(name + ".idx"));
    }
    files = files_of(index_paths);
    stream = std::make_shared<const TokenStream>(layouts);
    starts.push_back(tokens);
  }
  [[nodiscard]] Documents open(std::uint64_t most_bytes) const {
    return Documents(stream, layouts, files, most_bytes);
  }
  void expect_all(std::uint64_t most_bytes) const;

  TempFolder folder;
  TokenFolder memory;
  std::vector<TokenLayout> layouts;
  std::shared_ptr<Files> files;
  std::shared_ptr<const TokenStream> stream;
  Offsets starts;  // and the end
  std::uint64_t tokens = 0;
};

void DocumentsRig::expect_all(std::uint64_t most_bytes) const {
  SCOPED_TRACE(testing::Message() << "a table of " << most_bytes << " bytes");
  const Documents documents = open(most_bytes);
  ASSERT_EQ(documents.size() + 1, starts.size());
  EXPECT_LE(Documents::table_bytes(layouts, most_bytes), std::max<std::uint64_t>(8, most_bytes));
  for (std::size_t first = 0; first <= starts.size(); ++first) {
    for (const std::size_t count : {0UL, 1UL, 2UL, 7UL, starts.size() - first}) {
      if (count > starts.size() - first) continue;
      Offsets found(count);
      documents.offsets(first, found);
      const auto begin = starts.begin() + static_cast<long>(first);
      ASSERT_EQ(found, Offsets(begin, begin + static_cast<long>(count))) << "from " << first;
    }
  }
  for (std::uint64_t first = 0; first < tokens; ++first) {
    for (const std::uint64_t ahead : {1, 5, 40, 1000}) {
      const std::uint64_t last = std::min(first + ahead, tokens);
      Offsets found, twin;
      documents.starts_between(first, last, &found);
      for (const std::uint64_t start : starts) {
        const bool inside = start > first && start < last;
        if (inside && (twin.empty() || twin.back() != start)) twin.push_back(start);
      }
      ASSERT_EQ(found, twin) << first << " to " << last;
    }
  }
}

Pair random_pair(std::mt19937* random, std::size_t documents, int empty_of_8) {
  Pair pair(documents);
  for (auto& document : pair) {
    if (static_cast<int>((*random)() % 8) < empty_of_8) continue;
    for (std::size_t i = 0; i < 1 + (*random)() % 3; ++i) {
      document.push_back(static_cast<std::int32_t>((*random)() % 6));
    }
  }
  pair.push_back({3});
  return pair;
}

TEST(Documents, AreThoseOfANaiveCountWhateverFitsInMemory) {
  std::mt19937 random(9);
  for (const int empty_of_8 : {0, 2, 6}) {
    const DocumentsRig rig({random_pair(&random, 30, empty_of_8), random_pair(&random, 1, 0),
                            random_pair(&random, 25, empty_of_8)});
    for (const std::uint64_t most_bytes : {0, 8, 16, 24, 100, 240, 1 << 20}) {
      rig.expect_all(most_bytes);
    }
  }
}

TEST(Documents, StandEmptyOnesAtTheStartAndAtTheEnd) {
  const DocumentsRig rig({{{}, {}, {0}, {4}, {}}, {{}, {0, 0}}, {{}, {5, 1}, {}, {}}});
  for (const std::uint64_t most_bytes : {0, 16, 1 << 20}) rig.expect_all(most_bytes);
}

TEST(Documents, ReadFewSequencesOfDocumentsThatHaveMany) {
  Pair pair;
  for (int i = 0; i < 40; ++i) pair.emplace_back(100, i % 2);
  const DocumentsRig rig({pair});
  const Documents sparse = rig.open(16), whole = rig.open(1 << 20);
  Offsets some(rig.starts.size()), all(rig.starts.size());
  sparse.offsets(0, some);
  whole.offsets(0, all);
  EXPECT_EQ(some, rig.starts);
  EXPECT_EQ(all, rig.starts);
}

TEST(Documents, GoOverManyPiecesOfTheIndex) {
  const DocumentsRig rig({Pair(20'000, {1, 2})});
  const Documents documents = rig.open(1 << 20);
  Offsets all(20'001);
  documents.offsets(0, all);
  EXPECT_EQ(all, rig.starts);
}

TEST(Documents, NeverLeaveTheStreamWhenTheIndexChangesUnderThem) {
  const DocumentsRig rig(std::vector<Pair>{Pair{{4}, {5}, {6}, {2}}});
  const Documents documents = rig.open(8);
  // Nothing but the numbers changes, so every pointer and boundary is read as written.
  MegatronIndex lies;
  lies.lengths = {4, 5, 6, 2};
  lies.pointers = {-2, 1 << 20, -1000, std::int64_t{1} << 62};
  lies.boundaries = {0, -7, 99, 3, 4};
  rig.folder.write("p0.idx", lies.bytes());
  Offsets found(5);
  try {
    documents.offsets(0, found);
  } catch (const std::exception&) {
    return;  // noticed
  }
  for (const std::uint64_t start : found) EXPECT_LE(start, rig.tokens);
}

std::atomic<bool> in_advice = false, leave_advice = false;

int advise_when_told(int /*fd*/, off_t /*offset*/, off_t /*size*/, int /*advice*/) {
  in_advice = true;
  while (!leave_advice) std::this_thread::yield();
  return 0;
}

TEST(Documents, AreReadInAChildOfAForkThatHeldTheLockOfTheirFiles) {
  if (!children_work()) GTEST_SKIP() << "the sanitizer does not follow threads into a child";
  const DocumentsRig rig({Pair(100, {1, 2}), Pair(50, {3})});
  const Documents documents = rig.open(8);
  Offsets all(rig.starts.size());
  documents.offsets(0, all);  // now the files are open
  const sys::Fault<decltype(sys::table.fadvise)> slow(sys::table.fadvise, advise_when_told);
  std::thread holder([&] { rig.files->advise_on_open(Advice::random); });
  while (!in_advice) std::this_thread::yield();
  const pid_t child = start_child([&] {
    leave_advice = true;
    Offsets again(rig.starts.size());
    documents.offsets(0, again);
    return again == rig.starts ? 0 : 1;
  });
  expect_success(child);
  leave_advice = true;
  holder.join();
  documents.offsets(0, all);
  EXPECT_EQ(all, rig.starts) << "and in the parent";
}

}  // namespace
}  // namespace lowtide::documents_test
