#include "ceiling/registry.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <thread>

#include "support/forked.h"
#include "support/mapped_file.h"

namespace lowtide::registry_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// Whether it comes about within a minute.
bool eventually(const std::function<bool()>& holds) {
  for (int tries = 0; tries < 6000; ++tries) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::ptrdiff_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

class RegistryTest : public testing::Test {
 protected:
  ~RegistryTest() override { registry_.stop(); }

  TempFolder folder_;
  Registry& registry_ = Registry::of_process();
  MappedFile file_{sparse_file(folder_, "a", 64 * kMiB), 64 * kMiB};
};

TEST_F(RegistryTest, TrimsWhatNobodyAnnounced) {
  TrimmedMap map(file_.data(), file_.size(), 0, 8 * kMiB, nullptr);
  registry_.add(map);
  file_.read(0, file_.size());
  EXPECT_TRUE(eventually([&] { return file_.entered_bytes().value() < 8 * kMiB; }));
  registry_.remove(map);
  EXPECT_GE(map.trims(), 1u);
}

TEST_F(RegistryTest, LeavesAMapAloneThatWasRemoved) {
  TrimmedMap map(file_.data(), file_.size(), 0, 8 * kMiB, nullptr);
  TrimmedMap other(file_.data(), 4096, 0, 8 * kMiB, nullptr);
  registry_.add(map);
  registry_.add(other);  // keeps the thread awake
  registry_.remove(map);
  const std::uint64_t trims = map.trims();
  file_.read(0, file_.size());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(file_.entered_bytes(), file_.size());
  EXPECT_EQ(map.trims(), trims);
  registry_.remove(other);
  registry_.remove(other);
}

TEST_F(RegistryTest, HasOneThreadForAllMapsAndNoneAfterStop) {
  const std::ptrdiff_t before = threads();
  TrimmedMap first(file_.data(), file_.size() / 2, 0, 8 * kMiB, nullptr);
  TrimmedMap second(file_.data() + file_.size() / 2, file_.size() / 2, 0, 8 * kMiB, nullptr);
  registry_.add(first);
  registry_.add(second);
  EXPECT_EQ(threads(), before + 1);
  registry_.stop();
  // A thread that was joined may be in /proc for a moment longer.
  for (int i = 0; i < 500 && threads() != before; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(threads(), before);
  EXPECT_FALSE(registry_.running());
  (void)registry_.mutex();
  EXPECT_FALSE(registry_.running());  // only who asks for it gets it back
  registry_.resume();
  EXPECT_TRUE(registry_.running());
  registry_.remove(first);
  registry_.remove(second);
}

TEST_F(RegistryTest, StopEndsItsThreadAlsoWhileAnotherIsBeingStarted) {
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      TrimmedMap map(file_.data(), file_.size(), 0, 8 * kMiB, nullptr);
      registry_.add(map);
      registry_.remove(map);
    }
  });
  for (int i = 0; i < 500; ++i) {
    while (!registry_.running()) std::this_thread::yield();
    registry_.stop();
  }
  done = true;
  other.join();
  registry_.stop();
  EXPECT_FALSE(registry_.running());
}

TEST_F(RegistryTest, TheChildOfAForkHasTheMapsAndAThreadOfItsOwn) {
  if (!children_work()) GTEST_SKIP() << "threads in a forked child: not with this sanitizer";
  TrimmedMap map(file_.data(), file_.size(), 0, 8 * kMiB, nullptr);
  registry_.add(map);
  const pid_t child = start_child([&] {
    if (registry_.running()) return 2;
    registry_.resume();
    if (!registry_.running()) return 3;
    file_.read(0, file_.size());
    if (!eventually([&] { return file_.entered_bytes().value() < 8 * kMiB; })) return 4;
    registry_.remove(map);
    registry_.stop();
    return 0;
  });
  expect_success(child);
  EXPECT_TRUE(registry_.running());
  registry_.remove(map);
}

}  // namespace
}  // namespace lowtide::registry_test
