#include "lowtide/command/run_command.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "os/temp_folder.h"
#include "support/forked.h"
#include "system/process.h"

namespace lowtide::run_command_test {
namespace {

CommandEnd shell(const std::string& script, const std::function<void(int)>& started = {}) {
  return run_command({{"/bin/sh", "-c", script}, {}}, started);
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Command, GivesTheCodeOfTheProgram) {
  EXPECT_EQ(run_command({{"true"}, {}}).exit_code, 0);
  const CommandEnd end = shell("exit 42");
  EXPECT_EQ(end.exit_code, 42);
  EXPECT_EQ(end.error, "");
}

TEST(Command, TellsTheSignalAsAShellDoes) {
  EXPECT_EQ(shell("kill -KILL $$").exit_code, 128 + SIGKILL);
  EXPECT_EQ(shell("kill -SEGV $$").exit_code, 128 + SIGSEGV);
}

TEST(Command, IsNotFoundOrNotExecutable) {
  const TempFolder folder;
  const CommandEnd missing = run_command({{"lowtide-no-such-program"}, {}});
  EXPECT_EQ(missing.exit_code, 127);
  EXPECT_EQ(missing.error, "lowtide-no-such-program: No such file or directory");
  const std::string plain = folder.write("plain", "text");
  const CommandEnd refused = run_command({{plain}, {}});
  EXPECT_EQ(refused.exit_code, 126);
  EXPECT_EQ(refused.error, plain + ": Permission denied");
  EXPECT_EQ(run_command({{folder.path()}, {}}).exit_code, 126);
  EXPECT_THROW((void)run_command({}), std::invalid_argument);
}

TEST(Command, IsTheProgramOnlyAfterStarted) {
  const TempFolder folder;
  const std::string mark = folder / "mark";
  int seen = 0;
  bool early = true;
  const CommandEnd end = shell("echo $$ > '" + mark + "'", [&](int pid) {
    seen = pid;
    early = ::access(mark.c_str(), F_OK) == 0;
    EXPECT_TRUE(read_stat({}, pid));
  });
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_FALSE(early);
  EXPECT_EQ(text_of(mark), std::to_string(seen) + "\n");
}

TEST(Command, LeavesNothingRunningWhenStartedThrows) {
  int child = 0;
  EXPECT_THROW((void)shell("exit 0",
                           [&](int pid) {
                             child = pid;
                             throw std::runtime_error("no");
                           }),
               std::runtime_error);
  EXPECT_EQ(::kill(child, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(Command, AddsVariablesAndReplacesThem) {
  const TempFolder folder;
  const std::string out = folder / "out";
  ::setenv("LOWTIDE_TEST_OLD", "old", 1);
  const CommandOptions options{
      {"sh", "-c", "echo $LOWTIDE_TEST_OLD-$LOWTIDE_TEST_NEW-${HOME+home} > '" + out + "'"},
      {{"LOWTIDE_TEST_OLD", "changed"}, {"LOWTIDE_TEST_NEW", "a b"}, {"HOME", "/"}}};
  EXPECT_EQ(run_command(options).exit_code, 0);
  EXPECT_EQ(text_of(out), "changed-a b-home\n");
  EXPECT_STREQ(::getenv("LOWTIDE_TEST_OLD"), "old");
  ::unsetenv("LOWTIDE_TEST_OLD");
}

TEST(Command, PassesOnWhatIsSentToUs) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    const std::string trap = "trap 'exit 7' " + std::to_string(number);
    // The program tells that it is ready by the signal to us, its parent.
    const CommandEnd end = shell(trap + "; (kill -" + std::to_string(number) +
                                 " $PPID) & while :; do sleep 0.01; done");
    EXPECT_EQ(end.exit_code, 7) << number;
  }
}

TEST(Command, EndsByASignalThatComesBeforeItIsTheProgram) {
  const CommandEnd end = shell("exit 0", [](int) { ::kill(::getpid(), SIGTERM); });
  EXPECT_EQ(end.exit_code, 128 + SIGTERM);
}

TEST(Command, KeepsIgnoredSignalsIgnored) {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &ignore, &before);
  EXPECT_EQ(shell("kill -INT $$; exit 3").exit_code, 3);
  struct sigaction after {};
  ::sigaction(SIGINT, &before, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
}

TEST(Command, PutsSignalsBackAsTheyWere) {
  struct sigaction before {
  }, after{};
  sigset_t mask_before, mask_after;
  ::sigaction(SIGTERM, nullptr, &before);
  ::sigprocmask(SIG_SETMASK, nullptr, &mask_before);
  EXPECT_EQ(shell("exit 0").exit_code, 0);
  ::sigaction(SIGTERM, nullptr, &after);
  ::sigprocmask(SIG_SETMASK, nullptr, &mask_after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) {
    EXPECT_EQ(::sigismember(&mask_before, number), ::sigismember(&mask_after, number));
  }
  EXPECT_FALSE(adopts_orphans());
}

TEST(Command, KnowsItsEndThoughSIGCHLDWasIgnored) {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGCHLD, &ignore, &before);
  EXPECT_EQ(shell("exit 5").exit_code, 5);
  ::sigaction(SIGCHLD, &before, nullptr);
}

TEST(Command, ReapsOrphansBelowTheProgram) {
  const TempFolder folder;
  const std::string orphan = folder / "orphan";
  // The inner shell ends at once and leaves a process that ends before the program does.
  const CommandEnd end =
      shell("sh -c 'sleep 0.01 & echo $! > " + orphan + "'; pid=$(cat " + orphan +
            "); while kill -0 $pid 2>/dev/null; do sleep 0.01; done; exit 9");
  EXPECT_EQ(end.exit_code, 9);
}

TEST(Command, DoesNotOutliveUs) {
  const TempFolder folder;
  const std::string name = folder / "pid";
  const pid_t runner = start_child([&] {
    return shell("echo $$ > '" + name + ".part'; mv '" + name + ".part' '" + name +
                 "'; exec sleep 100")
        .exit_code;
  });
  const auto deadline = ::time(nullptr) + 60;
  while (::access(name.c_str(), F_OK) != 0 && ::time(nullptr) < deadline) ::usleep(1000);
  const int program = std::stoi("0" + text_of(name));
  ASSERT_GT(program, 0);
  ::kill(runner, SIGKILL);
  ::waitpid(runner, nullptr, 0);
  while (::time(nullptr) < deadline) {
    const auto stat = read_stat({}, program);
    if (!stat || stat->state == 'Z') break;
    ::usleep(1000);
  }
  const auto stat = read_stat({}, program);
  EXPECT_TRUE(!stat || stat->state == 'Z');
}

}  // namespace
}  // namespace lowtide::run_command_test
