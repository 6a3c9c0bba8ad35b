#include "system/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "os/as_nobody.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/forked.h"

namespace lowtide::process_test {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr int kPid = 2000000000;  // above any real one, so that signals find nobody

class ProcessTest : public testing::Test {
 protected:
  ProcessTest() : root_{folder_ / "proc", folder_ / "cgroup"} {}
  void file(const std::string& name, const std::string& text) {
    folder_.write("proc/" + std::to_string(kPid) + "/" + name, text);
  }
  void stat(const std::string& comm) {
    file("stat", "1 (" + comm +
                     ") S 77 1 1 0 -1 4194560 1234 5 6 7 8 9 0 0 20 0 3 0 987654 1000 200 "
                     "18446744073709551615 1 1\n");
  }
  TempFolder folder_;
  SystemRoot root_;
};

TEST_F(ProcessTest, ReadsStatWhateverTheNameIs) {
  for (const char* name : {"python3", "a b", "a) R 1 (", "((", "", "x\ny", "1 2 3 4"}) {
    stat(name);
    const auto told = read_stat(root_, kPid);
    ASSERT_TRUE(told) << told.why;
    EXPECT_EQ(told->name, name);
    EXPECT_EQ(told->pid, kPid);
    EXPECT_EQ(told->parent, 77);
    EXPECT_EQ(told->state, 'S');
    EXPECT_EQ(told->minor_faults, 1234u);
    EXPECT_EQ(told->major_faults, 6u);
    EXPECT_EQ(told->threads, 3u);
    EXPECT_EQ(told->start_ticks, 987654u);
  }
}

TEST_F(ProcessTest, SeesThatAProcessIsOnItsWayOut) {
  stat("x");
  EXPECT_FALSE(read_stat(root_, kPid)->exiting);
  file("stat", "1 (x) R 77 1 1 0 -1 4194564 1234 5 6 7 8 9 0 0 20 0 3 0 987654 1000 200\n");
  EXPECT_TRUE(read_stat(root_, kPid)->exiting);
}

TEST_F(ProcessTest, WhoseFirstThreadEndedIsToldByAnother) {
  const std::string number = std::to_string(kPid);
  file("status", "Name:\tx\nThreads:\t2\n");
  file("task/" + number + "/status", "Name:\tx\nThreads:\t2\n");
  EXPECT_FALSE(read_memory(root_, kPid).rss);
  file("task/2000000001/status", "Name:\tx\nVmRSS:\t60 kB\nRssAnon:\t10 kB\n");
  EXPECT_EQ(read_memory(root_, kPid).rss.value, 60u * 1024);
  EXPECT_EQ(read_memory(root_, kPid).anon.value, 10u * 1024);
}

TEST_F(ProcessTest, TellsTheWordsItWasStartedWith) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(read_command_line(root_, kPid), Words{});
  file("cmdline", std::string("python\0a b\0\0x\0", 14));
  EXPECT_EQ(read_command_line(root_, kPid), (Words{"python", "a b", "", "x"}));
}

TEST_F(ProcessTest, SurvivesStatsThatAreNone) {
  for (const char* text : {"", "\n", "1", "1 (a", ")(", "1 (a) S", "1 (a) S x 1 1 1 1 1 1"}) {
    file("stat", text);
    EXPECT_EQ(read_stat(root_, kPid).why, "/proc/PID/stat is not as expected") << text;
  }
}

TEST_F(ProcessTest, ReadsStatusAsBytes) {
  file("status",
       "Name:\tx\nVmPTE:\t      72 kB\nVmRSS:\t    3000 kB\nRssAnon:\t    1000 kB\nRssFile:\t  "
       "1900 kB\nRssShmem:\t 100 kB\nVmSwap:\t       0 kB\n");
  const ProcessMemory memory = read_memory(root_, kPid);
  EXPECT_EQ(memory.rss.value, 3000u * 1024);
  EXPECT_EQ(memory.anon.value, 1000u * 1024);
  EXPECT_EQ(memory.file.value, 1900u * 1024);
  EXPECT_EQ(memory.shmem.value, 100u * 1024);
  EXPECT_EQ(memory.page_tables.value, 72u * 1024);
  EXPECT_EQ(memory.swap.value, 0u);
}

TEST_F(ProcessTest, TellsWhatStatusDoesNotSay) {
  file("status", "Name:\tx\nVmRSS:\t3000 kB\n");  // before Linux 4.5
  EXPECT_EQ(read_memory(root_, kPid).rss.value, 3000u * 1024);
  EXPECT_EQ(read_memory(root_, kPid).anon.why, "this kernel does not report it");
  file("status", "Name:\tx\nState:\tZ (zombie)\n");
  EXPECT_EQ(read_memory(root_, kPid).anon.why, "the process has released its memory");
  file("status", "VmRSS:\t99999999999999999999 kB\nRssAnon:\t18446744073709551615 kB\n");
  EXPECT_FALSE(read_memory(root_, kPid).anon);
}

TEST_F(ProcessTest, TellsPssOfTheRollupAndNoOtherLine) {
  stat("x");
  EXPECT_EQ(read_pss(root_, kPid).why, "this kernel has no /proc/PID/smaps_rollup");
  file("smaps_rollup",
       "1-2 ---p 0 00:00 0 [rollup]\nRss: 900 kB\nPss_Dirty: 7 kB\nPss: 50 kB\nPss_Anon: 8 kB\n");
  EXPECT_EQ(read_pss(root_, kPid).value, 50u * 1024);
}

TEST_F(ProcessTest, ReadsIoOrSaysWhyNot) {
  EXPECT_EQ(read_io(root_, kPid).disk_bytes.why, "the process has ended");
  stat("x");
  EXPECT_EQ(read_io(root_, kPid).disk_bytes.why, "this kernel has no /proc/PID/io");
  file("io", "rchar: 12\nwchar: 3\nread_bytes: 4096\nwrite_bytes: 1\n");
  EXPECT_EQ(read_io(root_, kPid).disk_bytes.value, 4096u);
  EXPECT_EQ(read_io(root_, kPid).asked_bytes.value, 12u);
}

TEST_F(ProcessTest, ReadsTheChildrenOfAllThreads) {
  stat("x");
  EXPECT_EQ(read_children(root_, kPid).why, "this kernel has no /proc/PID/task/TID/children");
  file("task/1/children", "5 6 ");
  file("task/2/children", "");
  file("task/3/children", "7 ");
  auto children = read_children(root_, kPid).value.value_or(std::vector<int>{});
  std::sort(children.begin(), children.end());
  EXPECT_EQ(children, (std::vector{5, 6, 7}));
}

TEST_F(ProcessTest, ListsFoldersThatAreNumbersOnly) {
  stat("x");
  for (const char* name : {"self/x", "1x/x", "-5/x", "0/x", "meminfo"}) {
    folder_.write(std::string("proc/") + name, "");
  }
  EXPECT_EQ(list_processes(root_), std::vector{kPid});
  EXPECT_TRUE(list_processes({folder_ / "none", ""}).empty());
}

TEST(Process, HiddenByHidepidIsNotCalledEnded) {
  const TempFolder folder;  // as hidepid=2 does it: the process is there, its folder is not
  const SystemRoot root{folder.path(), ""};
  EXPECT_EQ(read_stat(root, ::getpid()).why, "/proc hides the process (hidepid)");
  EXPECT_EQ(read_memory(root, ::getpid()).anon.why, "/proc hides the process (hidepid)");
  EXPECT_EQ(read_stat(root, kPid).why, "the process has ended");
}

TEST(Process, SeesTheMemoryThatWeTake) {
  const std::uint64_t before = read_memory({}, ::getpid()).anon.value.value_or(0);
  constexpr std::size_t kSize = 64 * kMiB;
  void* const at =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  std::memset(at, 1, kSize);
  const ProcessMemory memory = read_memory({}, ::getpid());
  const Figure pss = read_pss({}, ::getpid());
  ::munmap(at, kSize);
  EXPECT_GE(memory.anon.value.value_or(0), before + kSize - kMiB);
  EXPECT_TRUE(memory.page_tables);
  EXPECT_GE(pss.value.value_or(kSize), kSize);  // unknown on old kernels
  EXPECT_EQ(read_stat({}, ::getpid())->parent, ::getppid());
  EXPECT_GT(thread_cpu_ns(), 0u);
}

TEST(Process, OfAnotherUserTellsItsMemoryButNotItsMaps) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to have a process of another user";
  const int ours = ::getpid();
  const std::string said = as_nobody([ours] {
    return (read_memory({}, ours).anon ? "memory " : "no memory ") + read_pss({}, ours).why + "; " +
           read_io({}, ours).disk_bytes.why;
  });
  const std::string why = "no permission: the process belongs to another user";
  EXPECT_EQ(said, "memory " + why + "; " + why);
}

TEST(Process, ThatEndedAndWasNotReapedHasNoMemory) {
  const pid_t child = start_child([] { return 0; });
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(read_stat({}, child)->state, 'Z');
  EXPECT_FALSE(read_memory({}, child).anon);
  EXPECT_FALSE(read_pss({}, child));
  expect_success(child);
  EXPECT_EQ(read_stat({}, child).why, "the process has ended");
}

TEST(Process, TellsOtherTroubleByItsName) {
  const sys::Fault fault(
      sys::table.open, +[](const char*, int) {
        errno = EMFILE;
        return -1;
      });
  EXPECT_EQ(read_pss({}, ::getpid()).why, "/proc/PID/smaps_rollup: Too many open files");
}

TEST(Machine, IsNamedInOneLine) {
  const TempFolder folder;
  folder.write("proc/meminfo", "MemTotal: 25165824 kB\n");
  const std::string text = machine_text({folder / "proc", ""});
  EXPECT_TRUE(text.starts_with("Linux ")) << text;
  EXPECT_NE(text.find(" core"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(", 24 GiB")) << text;
}

}  // namespace
}  // namespace lowtide::process_test
