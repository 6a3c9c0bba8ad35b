// Blocks of objects on a local disk: what counts as here, and what neither crashes nor other
// processes can break.
#include "tier/kept_object.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "os/memory.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/data_file.h"

namespace lowtide::kept_object_test {
namespace {

constexpr std::uint64_t kBlock = KeptObject::kBlockBytes;
constexpr const char* kKey = "0123456789abcdef0123456789abcdef";

class KeptObjectTest : public testing::Test {
 protected:
  [[nodiscard]] KeptObject open() const { return {folder_.path(), kKey, held_.size()}; }
  [[nodiscard]] std::span<const std::byte> block(std::uint64_t number) const {
    return std::as_bytes(std::span(held_)).subspan(number * kBlock, number == 2 ? 123 : kBlock);
  }
  // Whether the block is here, with the right bytes.
  [[nodiscard]] bool has(KeptObject& object, std::uint64_t number) {
    if (!object.load(number, buffer_.bytes())) return false;
    EXPECT_EQ(std::memcmp(buffer_.data(), block(number).data(), block(number).size()), 0);
    return true;
  }
  // Changes one byte of a file whose name ends so.
  void damage(const std::string& ending, std::uint64_t at) const {
    std::fstream file(only(ending), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char old = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(old ^ 1));
    ASSERT_TRUE(file.good());
  }
  [[nodiscard]] std::string only(const std::string& ending) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (entry.path().string().ends_with(ending)) found.push_back(entry.path());
    }
    EXPECT_EQ(found.size(), 1U) << ending;
    return found.empty() ? "" : found.front();
  }

  const TempFolder folder_;
  const std::string held_ = pattern(2 * kBlock + 123);
  Memory buffer_{kBlock};
};

TEST_F(KeptObjectTest, HasWhatWasKeptAndNothingElse) {
  KeptObject object = open();
  EXPECT_EQ(object.blocks(), 3U);
  EXPECT_EQ(object.block_bytes(2), 123U);
  EXPECT_FALSE(has(object, 1));
  object.keep(1, block(1));
  object.keep(2, block(2));
  EXPECT_TRUE(has(object, 1));
  EXPECT_TRUE(has(object, 2));
  EXPECT_FALSE(has(object, 0));
  EXPECT_TRUE(object.ready(kBlock, kBlock + 123));
  EXPECT_FALSE(object.ready(kBlock - 1, 2)) << "half of it is in block 0";
  EXPECT_FALSE(object.ready(2 * kBlock, kBlock + 1)) << "beyond the object";
  EXPECT_TRUE(object.stored(kBlock - 1, 2));
  EXPECT_EQ(object.ready_blocks(), 2U);
  EXPECT_EQ(plain_read(object.data_path(), kBlock, kBlock + 123), held_.substr(kBlock));
}

TEST_F(KeptObjectTest, IsFoundAgainAndCheckedBeforeItCounts) {
  {
    KeptObject object = open();
    object.keep(0, block(0));
  }
  KeptObject again = open();
  EXPECT_TRUE(again.stored(0, 10));
  EXPECT_FALSE(again.ready(0, 10)) << "not checked yet";
  EXPECT_TRUE(has(again, 0));
  EXPECT_TRUE(again.ready(0, 10));
}

TEST_F(KeptObjectTest, SeesWhatAnotherProcessKeepsMeanwhile) {
  KeptObject one = open(), other = open();
  EXPECT_EQ(one.data_path(), other.data_path());
  other.keep(1, block(1));
  EXPECT_TRUE(has(one, 1));
}

TEST_F(KeptObjectTest, NeverTakesADamagedBlock) {
  {
    KeptObject object = open();
    object.keep(0, block(0));
    object.keep(1, block(1));
    object.keep(2, block(2));
  }
  damage(".data", 5);
  damage(".blocks", 64 + 8);  // the checksum of block 1
  KeptObject again = open();
  EXPECT_FALSE(has(again, 0));
  EXPECT_FALSE(has(again, 1));
  EXPECT_TRUE(has(again, 2));
  again.keep(0, block(0));
  EXPECT_TRUE(has(again, 0));
}

TEST_F(KeptObjectTest, StartsAgainFromADamagedHeader) {
  {
    KeptObject object = open();
    object.keep(0, block(0));
  }
  damage(".blocks", 30);
  KeptObject again = open();
  EXPECT_FALSE(has(again, 0));
  again.keep(0, block(0));
  EXPECT_TRUE(has(again, 0));
}

TEST_F(KeptObjectTest, StartsAgainWhereAFileIsShortOrMissing) {
  (void)open();
  std::filesystem::resize_file(only(".blocks"), 20);
  (void)open();
  std::filesystem::remove(open().data_path());
  KeptObject again = open();
  again.keep(0, block(0));
  EXPECT_TRUE(has(again, 0));
}

TEST_F(KeptObjectTest, LosesWhatSomebodyRemovedAndNeverReadsItsSuccessor) {
  KeptObject object = open();
  object.keep(0, block(0));
  std::filesystem::remove(only(".blocks"));
  std::filesystem::remove(object.data_path());
  KeptObject successor = open();
  EXPECT_NE(successor.data_path(), object.data_path());
  EXPECT_FALSE(has(object, 0));
  EXPECT_FALSE(object.lost());
  object.keep(1, block(1));
  EXPECT_TRUE(object.lost());
  EXPECT_FALSE(has(successor, 1));
}

TEST_F(KeptObjectTest, AFullDiskKeepsNothing) {
  KeptObject object = open();
  const auto full = [](int, const void*, std::size_t, off_t) -> ssize_t {
    errno = ENOSPC;
    return -1;
  };
  {
    const sys::Fault<decltype(sys::table.pwrite)> fault(sys::table.pwrite, full);
    EXPECT_THROW(object.keep(0, block(0)), IoError);
  }
  EXPECT_FALSE(object.ready(0, 1));
  EXPECT_FALSE(has(object, 0));
}

TEST(ObjectKeyTest, SaysWhichVersionOfWhichObject) {
  const auto shard = [](const std::string& path, const std::string& etag,
                        const std::string& modified, std::uint64_t size) {
    auto remote = std::make_shared<Remote>();
    remote->url = "https://user:secret@host/m.npy";
    remote->etag = etag;
    remote->modified = modified;
    return Shard{.path = path, .size_bytes = size, .remote = remote};
  };
  const std::string key = object_key(shard("s3://b/m.npy", "\"1\"", "", 10));
  EXPECT_EQ(key.size(), 32U);
  EXPECT_EQ(key, object_key(shard("s3://b/m.npy", "\"1\"", "today", 10)));
  for (const Shard& other :
       {shard("s3://b/n.npy", "\"1\"", "", 10), shard("s3://b/m.npy", "\"2\"", "", 10),
        shard("s3://b/m.npy", "", "today", 10), shard("s3://b/m.npy", "\"1\"", "", 11)}) {
    EXPECT_NE(object_key(other), key);
  }
  EXPECT_EQ(object_key(shard("s3://b/m.npy", "", "", 10)), "") << "nothing would notice a change";
}

}  // namespace
}  // namespace lowtide::kept_object_test
