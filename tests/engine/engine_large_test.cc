// Files without bytes, files of several GiB, and more files than descriptors.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/data_file.h"
#include "support/read_rig.h"

namespace lowtide::engine_large_test {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kGiB = 1024 * kMiB;

// Lowers the soft limit of descriptors for as long as it lives.
class ScopedDescriptorLimit {
 public:
  explicit ScopedDescriptorLimit(rlim_t most) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const struct rlimit now {
      most, before_.rlim_max
    };
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  ~ScopedDescriptorLimit() { (void)::setrlimit(RLIMIT_NOFILE, &before_); }
  ScopedDescriptorLimit(const ScopedDescriptorLimit&) = delete;
  ScopedDescriptorLimit& operator=(const ScopedDescriptorLimit&) = delete;

 private:
  struct rlimit before_ {};
};

class EngineSlow : public testing::TestWithParam<EngineCase> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam().kind); !why.empty()) GTEST_SKIP() << why;
  }
  TempFolder folder_;
};

TEST_P(EngineSlow, OpensFilesOfNoBytesBesideOthers) {
  const std::string held = pattern(100'001);
  const std::string none;
  const std::vector<std::string> paths{folder_.write("a", ""), folder_.write("b", held),
                                       folder_.write("c", ""), folder_.write("d", "")};
  const EngineRig rig(files_of(paths), GetParam(), 2 * kMiB);
  const CheckedReads wanted({{.offset_bytes = 0, .size_bytes = 100'001, .shard = 1},
                             {.offset_bytes = 100'000, .size_bytes = 1, .shard = 1}});
  ASSERT_TRUE(rig.engine->read(wanted.reads()).ok());
  wanted.expect_bytes({&none, &held, &none, &none});
  const CheckedReads beyond({{.offset_bytes = 0, .size_bytes = 1, .shard = 2}});
  const Outcome outcome = rig.engine->read(beyond.reads());
  EXPECT_TRUE(outcome.ended);
  EXPECT_EQ(outcome.found_bytes, 0U);

  const EngineRig empty(files_of({paths[0]}), GetParam(), 2 * kMiB);
  EXPECT_TRUE(empty.engine->read({}).ok());
}

TEST_P(EngineSlow, ReadsAroundFourGiBOfASparseFile) {
  if (GetParam().kind == EngineKind::memory) GTEST_SKIP() << "the data is not to be held";
  const std::string path = folder_ / "sparse.bin";
  const std::string mark = pattern(200'000, 5);
  const std::uint64_t size_bytes = 5 * kGiB + 333;
  const std::vector<std::uint64_t> places{0, 2 * kGiB - 100'000, 4 * kGiB - 100'000,
                                          size_bytes - mark.size()};
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(size_bytes)), 0);
  for (const std::uint64_t place : places) {
    ASSERT_EQ(::pwrite(fd, mark.data(), mark.size(), static_cast<off_t>(place)),
              static_cast<ssize_t>(mark.size()));
  }
  ::close(fd);
  evict(path);
  const EngineRig rig(files_of({path}), GetParam(), 4 * kMiB);
  std::vector<Extent> extents;
  for (const std::uint64_t place : places) {
    for (std::uint64_t i = 0; i < 300; ++i) {
      extents.push_back({.offset_bytes = place + i * 660, .size_bytes = 648, .shard = 0});
    }
  }
  extents.push_back({.offset_bytes = 4 * kGiB - 1, .size_bytes = 2, .shard = 0});
  extents.push_back({.offset_bytes = 3 * kGiB + 17, .size_bytes = 100'000, .shard = 0});  // a hole
  extents.push_back({.offset_bytes = size_bytes - 1, .size_bytes = 1, .shard = 0});
  const CheckedReads wanted(extents);
  ASSERT_TRUE(rig.engine->read(wanted.reads()).ok());
  for (const Read& read : wanted.reads()) {
    const std::string twin = plain_read(path, read.from.offset_bytes, read.from.size_bytes);
    ASSERT_EQ(std::memcmp(twin.data(), read.into, twin.size()), 0) << read.from.offset_bytes;
  }
}

// One folder of small files for all engines.
struct ManyShards {
  static constexpr std::size_t kShards = 10'000;
  static constexpr std::uint32_t kRowBytes = 100;
  TempFolder folder;
  std::vector<std::string> paths, held;

  ManyShards() {
    for (std::size_t i = 0; i < kShards; ++i) {
      held.push_back(pattern(kRowBytes * (1 + i % 3), i + 1));
      paths.push_back(folder.write(std::to_string(i), held.back()));
    }
    const int fd = ::open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    EXPECT_EQ(::syncfs(fd), 0);  // one for all, so that evicting need not wait for each
    ::close(fd);
  }
  void evict_all() const {
    for (const std::string& path : paths) {
      const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      EXPECT_EQ(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
      ::close(fd);
      if (cached_bytes(path).value_or(0) != 0) (void)lowtide::evict_all(path);
    }
  }
};

const ManyShards& many_shards() {
  static const ManyShards many;
  return many;
}

TEST_P(EngineSlow, ReadsTenThousandShardsWithFewDescriptors) {
  const ManyShards& many = many_shards();
  many.evict_all();
  const ScopedDescriptorLimit limit(256);
  const EngineRig rig(files_of(many.paths), GetParam(), 16 * kMiB);
  std::vector<const std::string*> held;
  for (const std::string& text : many.held) held.push_back(&text);
  std::vector<Extent> extents;
  for (std::uint32_t i = 0; i < ManyShards::kShards; ++i) {
    const auto shard = static_cast<std::uint32_t>(i * 7919 % ManyShards::kShards);
    const std::uint64_t last = (shard % 3) * ManyShards::kRowBytes;
    extents.push_back({.offset_bytes = last, .size_bytes = ManyShards::kRowBytes, .shard = shard});
  }
  for (int round = 0; round < 2; ++round) {
    const CheckedReads wanted(extents);
    const Outcome outcome = rig.engine->read(wanted.reads());
    ASSERT_TRUE(outcome.ok()) << "errno " << outcome.err << " for read " << outcome.read;
    wanted.expect_bytes(held);
    if (round == 0) many.evict_all();
  }
}

// Hits and misses go different ways at the same time, and both need descriptors.
TEST_P(EngineSlow, ReadsShardsOfWhichEverySecondIsCachedWithFewDescriptors) {
  const ManyShards& many = many_shards();
  many.evict_all();
  for (std::size_t i = 1; i < many.paths.size(); i += 2) {
    warm(many.paths[i], 0, many.held[i].size());
  }
  const ScopedDescriptorLimit limit(256);
  const EngineRig rig(files_of(many.paths), GetParam(), 16 * kMiB);
  std::vector<const std::string*> held;
  for (const std::string& text : many.held) held.push_back(&text);
  std::vector<Extent> extents;
  for (std::uint32_t i = 0; i < ManyShards::kShards; ++i) {
    const auto shard = static_cast<std::uint32_t>(i * 7919 % ManyShards::kShards);
    extents.push_back({.offset_bytes = 0, .size_bytes = ManyShards::kRowBytes, .shard = shard});
  }
  const CheckedReads wanted(extents);
  const Outcome outcome = rig.engine->read(wanted.reads());
  ASSERT_TRUE(outcome.ok()) << "errno " << outcome.err << " for read " << outcome.read;
  wanted.expect_bytes(held);
}

INSTANTIATE_TEST_SUITE_P(EveryEngine, EngineSlow, testing::ValuesIn(every_engine()),
                         [](const auto& one) { return one.param.name(); });

}  // namespace
}  // namespace lowtide::engine_large_test
