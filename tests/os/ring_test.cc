#include "os/ring.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lowtide/error.h"
#include "os/file.h"
#include "os/memory.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/thrown.h"

namespace lowtide::ring_test {
namespace {

using SubmitCall = int (*)(struct io_uring*, unsigned);

class RingTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why_not = Ring::probe();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }
  TempFolder folder_;
};

TEST_F(RingTest, ReadsManyAtOnce) {
  constexpr unsigned kReads = 100;
  constexpr std::uint32_t kSize = 648;
  const std::string bytes = pattern(kReads * kSize);
  const File file(folder_.write("a", bytes));
  std::vector<std::byte> out(bytes.size());
  Ring ring(16);
  EXPECT_EQ(ring.depth(), 16u);
  unsigned queued = 0;
  unsigned done = 0;
  while (done < kReads) {
    while (queued < kReads) {
      const std::uint64_t offset = std::uint64_t{queued} * kSize;
      if (!ring.read(file.fd(), offset, out.data() + offset, kSize, queued)) break;
      ++queued;
    }
    ASSERT_EQ(ring.submit(1), 0);
    Ring::Done finished[8];
    const std::size_t count = ring.reap(finished, 8);
    ASSERT_GT(count, 0u);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(finished[i].result, static_cast<std::int32_t>(kSize));
      EXPECT_LT(finished[i].tag, kReads);
    }
    done += static_cast<unsigned>(count);
  }
  EXPECT_EQ(ring.in_flight(), 0u);
  EXPECT_EQ(to_text(out), bytes);
}

TEST_F(RingTest, NeverHoldsMoreThanItsDepth) {
  const File file(folder_.write("a", "x"));
  Ring ring(3);  // the kernel makes 4 entries of it
  std::byte out[4];
  for (unsigned i = 0; i < 3; ++i) EXPECT_TRUE(ring.read(file.fd(), 0, out + i, 1, i));
  EXPECT_FALSE(ring.read(file.fd(), 0, out + 3, 1, 3));
  ASSERT_EQ(ring.submit(3), 0);
  EXPECT_FALSE(ring.read(file.fd(), 0, out + 3, 1, 3));
  EXPECT_EQ(ring.in_flight(), 3u);
  Ring::Done finished[4];
  EXPECT_EQ(ring.reap(finished, 2), 2u);
  EXPECT_EQ(ring.in_flight(), 1u);
  EXPECT_TRUE(ring.read(file.fd(), 0, out + 3, 1, 3));
}

TEST_F(RingTest, WaitsForNoMoreThanThereIs) {
  const File file(folder_.write("a", "x"));
  Ring ring(4);
  EXPECT_EQ(ring.submit(4), 0);
  std::byte out;
  ASSERT_TRUE(ring.read(file.fd(), 0, &out, 1, 7));
  EXPECT_EQ(ring.submit(100), 0);
  Ring::Done finished;
  ASSERT_EQ(ring.reap(&finished, 1), 1u);
  EXPECT_EQ(finished.tag, 7u);
  EXPECT_EQ(ring.reap(&finished, 1), 0u);
}

TEST_F(RingTest, GivesTheErrnoOfABadReadAndStillDoesTheOthers) {
  const File file(folder_.write("a", "xyz"));
  Ring ring(4);
  std::byte out[4];
  ASSERT_TRUE(ring.read(-1, 0, out, 1, 0));
  ASSERT_TRUE(ring.read(file.fd(), 1, out + 1, 1, 1));
  ASSERT_TRUE(ring.read(file.fd(), 2, out + 2, 10, 2));
  ASSERT_TRUE(ring.read(file.fd(), 3, out + 3, 1, 3));
  ASSERT_EQ(ring.submit(4), 0);
  Ring::Done finished[4];
  ASSERT_EQ(ring.reap(finished, 4), 4u);
  std::int32_t by_tag[4];
  for (const Ring::Done& one : finished) by_tag[one.tag] = one.result;
  EXPECT_EQ(by_tag[0], -EBADF);
  EXPECT_EQ(by_tag[1], 1);
  EXPECT_EQ(by_tag[2], 1);
  EXPECT_EQ(by_tag[3], 0);
  EXPECT_EQ(static_cast<char>(out[1]), 'y');
}

TEST_F(RingTest, ReadsThroughTheDirectTwin) {
  const std::string bytes = pattern(8192);
  const File file(folder_.write("a", bytes));
  if (file.direct_fd() < 0) GTEST_SKIP() << "this file system has no O_DIRECT";
  const Memory memory(8192);
  Ring ring(2);
  ASSERT_TRUE(ring.read(file.direct_fd(), 0, memory.data(), 8192, 1));
  ASSERT_EQ(ring.submit(1), 0);
  Ring::Done finished;
  ASSERT_EQ(ring.reap(&finished, 1), 1u);
  EXPECT_EQ(finished.result, 8192);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(memory.data()), 8192), bytes);
}

// The first byte of each.
std::string read_both(Ring& ring, int first_fd, int second_fd) {
  std::byte out[2]{};
  EXPECT_TRUE(ring.read(first_fd, 0, out, 1, 0));
  EXPECT_TRUE(ring.read(second_fd, 0, out + 1, 1, 1));
  EXPECT_EQ(ring.submit(2), 0);
  Ring::Done finished[2];
  EXPECT_EQ(ring.reap(finished, 2), 2u);
  return {static_cast<char>(out[0]), static_cast<char>(out[1])};
}

TEST_F(RingTest, ReadsAHeldDescriptorAndOthersBesideIt) {
  const File a(folder_.write("a", "a"));
  const File b(folder_.write("b", "b"));
  Ring ring(2);
  for (const int fd : {a.fd(), b.fd(), b.fd(), -1, a.fd()}) {
    ring.hold(fd);
    EXPECT_EQ(read_both(ring, a.fd(), b.fd()), "ab");
  }
}

TEST_F(RingTest, DoesNotLookUpWhatItHolds) {
  const File a(folder_.write("a", "a"));
  const File b(folder_.write("b", "b"));
  const int fd = ::dup(a.fd());
  Ring ring(2);
  ring.hold(fd);
  ASSERT_EQ(::dup2(b.fd(), fd), fd);
  EXPECT_EQ(read_both(ring, fd, b.fd()), "ab");
  ring.hold(-1);
  EXPECT_EQ(read_both(ring, fd, b.fd()), "bb");
  ::close(fd);
}

TEST_F(RingTest, LetsGoOfWhatItHeldWhenDestroyed) {
  static int last;
  last = -1;
  const sys::Fault fault(
      sys::table.ring_hold, +[](struct io_uring* ring, int fd) {
        last = fd;
        return sys::real_ring_hold(ring, fd);
      });
  const File file(folder_.write("a", "a"));
  {
    Ring ring(2);
    ring.hold(file.fd());
    EXPECT_EQ(last, file.fd());
  }
  EXPECT_EQ(last, -1);
}

TEST_F(RingTest, ReadsWhatTheKernelRefusesToHold) {
  const File a(folder_.write("a", "a"));
  const File b(folder_.write("b", "b"));
  Ring ring(2);
  ring.hold(a.fd());
  const sys::Fault fault(sys::table.ring_hold, +[](struct io_uring*, int) { return -EINVAL; });
  ring.hold(b.fd());
  EXPECT_EQ(read_both(ring, a.fd(), b.fd()), "ab");
}

// Submissions that fail with `err` so many times before they are real.
class FailingSubmit {
 public:
  FailingSubmit(int err, int times) : fault_(sys::table.ring_submit_and_wait, &submit) {
    err_ = err;
    left_ = times;
    real_ = fault_.real();
  }
  static inline int left_;

 private:
  static int submit(struct io_uring* ring, unsigned count) {
    return left_-- > 0 ? -err_ : real_(ring, count);
  }
  static inline int err_;
  static inline SubmitCall real_;
  sys::Fault<SubmitCall> fault_;
};

TEST_F(RingTest, TriesAgainAfterInterruptsAndShortages) {
  const File file(folder_.write("a", "x"));
  for (const int err : {EINTR, EAGAIN, EBUSY}) {
    Ring ring(2);
    std::byte out{0};
    ASSERT_TRUE(ring.read(file.fd(), 0, &out, 1, 1));
    const FailingSubmit fault(err, 5);
    EXPECT_EQ(ring.submit(1), 0);
    EXPECT_EQ(static_cast<char>(out), 'x') << err;
  }
}

TEST_F(RingTest, LetsTheCallerReapWhenTheKernelTakesNoMore) {
  const File file(folder_.write("a", "xy"));
  Ring ring(4);
  std::byte out[2];
  Ring::Done finished[2];
  ASSERT_TRUE(ring.read(file.fd(), 0, out, 1, 0));
  ASSERT_EQ(ring.submit(1), 0);
  ASSERT_TRUE(ring.read(file.fd(), 1, out + 1, 1, 1));
  {
    const FailingSubmit fault(EBUSY, 1'000'000);
    EXPECT_EQ(ring.submit(2), 0);
    EXPECT_EQ(ring.reap(finished, 2), 1u);
    EXPECT_EQ(ring.submit(1), EBUSY);
  }
  ASSERT_EQ(ring.submit(1), 0);
  EXPECT_EQ(ring.reap(finished, 2), 1u);
  EXPECT_EQ(finished[0].tag, 1u);
}

TEST_F(RingTest, ReturnsErrorsThatNoRetryHelps) {
  const File file(folder_.write("a", "x"));
  Ring ring(2);
  std::byte out;
  ASSERT_TRUE(ring.read(file.fd(), 0, &out, 1, 1));
  const FailingSubmit fault(ENXIO, 1'000'000);
  EXPECT_EQ(ring.submit(1), ENXIO);
}

TEST_F(RingTest, WaitsForReadsInFlightWhenDestroyed) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::byte out{0};
  std::thread writer;
  {
    Ring ring(2);
    ASSERT_TRUE(ring.read(ends[0], ~0ULL, &out, 1, 1));
    ASSERT_EQ(ring.submit(0), 0);
    writer = std::thread([fd = ends[1]] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      EXPECT_EQ(::write(fd, "z", 1), 1);
    });
  }
  EXPECT_EQ(static_cast<char>(out), 'z');
  writer.join();
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(RingTest, DropsReadsThatWereNeverSubmitted) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::byte out;
  {
    Ring ring(2);
    ASSERT_TRUE(ring.read(ends[0], ~0ULL, &out, 1, 1));
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(RingTest, IsOnlyLetGoInAForkedChild) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::byte out{0};
  auto ring = std::make_unique<Ring>(2);
  ASSERT_TRUE(ring->read(ends[0], ~0ULL, &out, 1, 1));
  ASSERT_EQ(ring->submit(0), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ring.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(::write(ends[1], "z", 1), 1);
  ASSERT_EQ(ring->submit(1), 0);
  Ring::Done finished;
  ASSERT_EQ(ring->reap(&finished, 1), 1u);
  EXPECT_EQ(finished.result, 1);
  EXPECT_EQ(static_cast<char>(out), 'z');
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Ring, SaysWhyThereIsNone) {
  const bool built = Ring::probe() != "built without liburing";
  const sys::Fault fault(sys::table.ring_init, +[](unsigned, struct io_uring*) { return -EPERM; });
  if (built) {
    EXPECT_EQ(Ring::probe(), "io_uring_setup: Operation not permitted");
  }
  const IoError error = caught<IoError>([&] { const Ring ring(8); }).value();
  EXPECT_EQ(error.err, built ? EPERM : ENOSYS);
  EXPECT_EQ(error.op, "io_uring_setup");
  EXPECT_STREQ(error.what(),
               built ? "io_uring_setup: Operation not permitted; forbidden by a seccomp filter "
                       "or the sysctl kernel.io_uring_disabled"
                     : "io_uring_setup: Function not implemented; built without liburing");
}

TEST_F(RingTest, IsProbedByUseAndNotOnlyByMaking) {
  const FailingSubmit fault(EPERM, 1'000'000);
  EXPECT_EQ(Ring::probe(), "io_uring_enter: Operation not permitted");
}

TEST_F(RingTest, HasAtLeastOnePlace) {
  EXPECT_THROW(Ring(0), std::invalid_argument);
}

}  // namespace
}  // namespace lowtide::ring_test
