#include "meter/tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "lowtide/error.h"
#include "meter/fake_proc.h"
#include "os/sys.h"
#include "support/forked.h"
#include "support/thrown.h"

namespace lowtide::tree_test {
namespace {

// Above any real pid, so that no real process answers.
constexpr int kBase = 2000000000;

// The last digits of the pids: "0 1 2".
std::string seen(Tree* tree, bool discover = true) {
  std::string text;
  for (const ProcessStat& process : tree->look(discover)) {
    text += (text.empty() ? "" : " ") + std::to_string(process.pid - kBase);
  }
  return text;
}

// With the kernel's lists of children, and without.
class TreeTest : public testing::TestWithParam<bool> {
 protected:
  void process(int pid, int parent, int start = 100, const std::string& name = "x",
               char state = 'S') {
    proc_.process(kBase + pid, kBase + parent, start, name, state);
    if (GetParam()) proc_.children(kBase + pid, "");
  }
  void children(int pid, const std::string& text) {
    if (GetParam()) proc_.children(kBase + pid, text);
  }
  static std::string pid(int number) { return std::to_string(kBase + number) + " "; }
  [[nodiscard]] Tree tree() const { return {proc_.root(), kBase}; }
  FakeProc proc_;
};

INSTANTIATE_TEST_SUITE_P(Kernels, TreeTest, testing::Bool(), [](const auto& kernel) {
  return kernel.param ? "WithChildrenFiles" : "WithoutThem";
});

TEST_P(TreeTest, FindsAllBelowAndNobodyElse) {
  process(0, 900);
  process(1, 0);
  process(2, 1);
  process(5, 901);
  process(6, 5);
  children(0, pid(1));
  children(1, pid(2));
  children(5, pid(6));
  Tree all = tree();
  EXPECT_EQ(seen(&all), "0 1 2");
  EXPECT_EQ(all.root_pid(), kBase);
}

TEST_P(TreeTest, FindsNewOnesOnlyWhenAsked) {
  process(0, 900);
  Tree all = tree();
  EXPECT_EQ(seen(&all), "0");
  process(1, 0);
  children(0, pid(1));
  EXPECT_EQ(seen(&all, false), "0");
  EXPECT_EQ(seen(&all), "0 1");
  EXPECT_EQ(seen(&all, false), "0 1");
}

TEST_P(TreeTest, FindsAChildWhosePidIsBelowItsParents) {
  process(0, 900);
  process(8, 0);
  process(3, 8);
  process(2, 3);
  children(0, pid(8));
  children(8, pid(3));
  children(3, pid(2));
  Tree all = tree();
  EXPECT_EQ(seen(&all), "0 2 3 8");
}

TEST_P(TreeTest, FollowsAnOrphanThatItKnew) {
  process(0, 900);
  process(1, 0);
  process(2, 1);
  children(0, pid(1));
  children(1, pid(2));
  Tree all = tree();
  EXPECT_EQ(seen(&all), "0 1 2");
  proc_.end(kBase + 1);
  process(2, 900);
  children(0, "");
  EXPECT_EQ(seen(&all), "0 2");
  proc_.end(kBase);
  EXPECT_EQ(seen(&all), "2");
  EXPECT_FALSE(all.ended());
  proc_.end(kBase + 2);
  EXPECT_EQ(seen(&all), "");
  EXPECT_TRUE(all.ended());
}

TEST_P(TreeTest, TakesAPidThatComesAgainForAnotherProcess) {
  process(0, 900);
  process(1, 0, 200);
  children(0, pid(1));
  Tree all = tree();
  EXPECT_EQ(seen(&all), "0 1");
  process(1, 901, 300);  // another's now
  children(0, "");
  EXPECT_EQ(seen(&all), "0");
  process(0, 900, 400);
  EXPECT_EQ(seen(&all), "");
  EXPECT_TRUE(all.ended());
}

TEST_P(TreeTest, FindsAChildThatGotTheNumberOfAStranger) {
  process(0, 900);
  process(1, 901, 200);
  Tree all = tree();
  EXPECT_EQ(seen(&all), "0");
  proc_.end(kBase + 1);
  EXPECT_EQ(seen(&all), "0");
  process(1, 0, 300);
  children(0, pid(1));
  EXPECT_EQ(seen(&all), "0 1");
}

TEST_P(TreeTest, FindsEvenOneThatTookTheNumberUnseen) {
  process(0, 900);
  process(1, 901, 200);
  Tree all = tree();
  EXPECT_EQ(seen(&all), "0");
  process(1, 0, 300);
  children(0, pid(1));
  std::string last;
  for (int i = 0; i < 70 && last != "0 1"; ++i) last = seen(&all);
  EXPECT_EQ(last, "0 1");
}

TEST_P(TreeTest, LeavesOutWhoEndedAndSeesWhatIsRunNow) {
  process(0, 900);
  process(1, 0, 100, "x", 'Z');
  children(0, pid(1));
  Tree all = tree();
  EXPECT_EQ(seen(&all), "0");
  process(0, 900, 100, "python3");  // after exec
  EXPECT_EQ(all.look(true).at(0).name, "python3");
  process(0, 900, 100, "x", 'Z');
  EXPECT_EQ(seen(&all), "");
}

TEST_P(TreeTest, AsksAgainForWhomItCouldNotReadNow) {
  process(0, 900);
  process(1, 0);
  children(0, pid(1));
  Tree all = tree();
  EXPECT_EQ(seen(&all), "0 1");
  {
    const sys::Fault fault(
        sys::table.open, +[](const char*, int) {
          errno = EMFILE;
          return -1;
        });
    EXPECT_EQ(seen(&all), "");
    EXPECT_FALSE(all.ended());
  }
  EXPECT_EQ(seen(&all), "0 1");
}

TEST(Tree, OfNoProcessIsAnError) {
  const FakeProc proc;
  const IoError error = caught<IoError>([&] { const Tree tree(proc.root(), kBase); }).value();
  EXPECT_EQ(error.err, ESRCH);
  EXPECT_NE(std::string(error.what()).find("the process has ended"), std::string::npos);
}

TEST(Tree, SeesRealChildrenComeAndGo) {
  if (!children_work()) GTEST_SKIP() << "the sanitizer does not support this fork";
  int ready[2], hold[2];
  ASSERT_EQ(::pipe(ready) + ::pipe(hold), 0);
  const pid_t child = start_child([&] {
    ::close(hold[1]);
    const pid_t grandchild = ::fork();
    char wait = 0;
    if (grandchild != 0 && ::write(ready[1], &wait, 1) != 1) return 1;
    const bool ended = ::read(hold[0], &wait, 1) == 0;
    if (grandchild > 0) ::waitpid(grandchild, nullptr, 0);
    return ended ? 0 : 1;
  });
  char told = 0;
  ASSERT_EQ(::read(ready[0], &told, 1), 1);
  Tree tree({}, child);
  EXPECT_EQ(tree.look(true).size(), 2u);
  for (const int end : {ready[0], ready[1], hold[0], hold[1]}) ::close(end);
  expect_success(child);
  EXPECT_TRUE(tree.look(true).empty());
  EXPECT_TRUE(tree.ended());
}

TEST(Tree, FindsOrphansThatCameToUs) {
  if (!children_work()) GTEST_SKIP() << "the sanitizer does not support this fork";
  int ready[2], hold[2];
  ASSERT_EQ(::pipe(ready) + ::pipe(hold), 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  // A daemon: its parent ends before anybody looks.
  const pid_t child = start_child([&] {
    ::close(hold[1]);
    const pid_t middle = ::fork();
    if (middle == 0) {
      const pid_t daemon = ::fork();
      char wait = 0;
      if (daemon == 0 && (::write(ready[1], &daemon, 1) != 1 || ::read(hold[0], &wait, 1) != 0)) {
        return 1;
      }
      return 0;
    }
    ::waitpid(middle, nullptr, 0);
    char wait = 0;
    return ::write(ready[1], &wait, 1) == 1 && ::read(hold[0], &wait, 1) == 0 ? 0 : 1;
  });
  char told = 0;
  ASSERT_EQ(::read(ready[0], &told, 1), 1);
  ASSERT_EQ(::read(ready[0], &told, 1), 1);
  Tree tree({}, child);
  const std::vector<ProcessStat> alive = tree.look(true);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
  for (const int end : {ready[0], ready[1], hold[0], hold[1]}) ::close(end);
  ASSERT_EQ(alive.size(), 2u);
  for (const ProcessStat& process : alive) {
    EXPECT_EQ(process.parent, ::getpid());
    expect_success(process.pid);
  }
}

}  // namespace
}  // namespace lowtide::tree_test
