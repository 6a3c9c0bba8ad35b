#include "inspect/doctor.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "http/transport.h"
#include "inspect/storage.h"
#include "lowtide/command/build.h"
#include "lowtide/error.h"
#include "lowtide/version.h"
#include "os/as_nobody.h"
#include "os/residency.h"
#include "os/ring.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/forked.h"
#include "support/npy_file.h"

namespace lowtide::doctor_test {
namespace {

const std::vector<std::string> kMachine = {
    "build",        "kernel",         "io_uring",   "cachestat",     "memory",
    "memory_limit", "default_memory", "open_files", "locked_memory", "huge_pages"};
const std::vector<std::string> kPath = {"path",      "file_system", "device",      "read_ahead",
                                        "direct_io", "residency",   "large_folios"};

std::vector<std::string> names(const Facts& facts) {
  std::vector<std::string> all;
  for (const Fact& fact : facts) all.push_back(fact.name);
  return all;
}

Fact find(const Facts& facts, const std::string& name) {
  for (const Fact& fact : facts) {
    if (fact.name == name) return fact;
  }
  ADD_FAILURE() << "no fact " << name;
  return {};
}

// A machine of our own making.
class DoctorTest : public testing::Test {
 protected:
  DoctorTest() : root_{folder_ / "proc", folder_ / "cgroup", folder_ / "sys"} {}

  [[nodiscard]] Fact fact(const std::string& name, const DoctorOptions& options = {}) const {
    return find(examine(options, root_), name);
  }

  TempFolder folder_;
  SystemRoot root_;
};

int no_ring(unsigned, struct io_uring*) {
  return -EPERM;
}

TEST_F(DoctorTest, NamesItsFactsInAFixedOrder) {
  std::vector<std::string> expected = kMachine;
  expected.push_back("choice");
  EXPECT_EQ(names(examine()), expected);

  expected = kMachine;
  expected.insert(expected.end(), kPath.begin(), kPath.end());
  expected.push_back("choice");
  EXPECT_EQ(names(examine({.path = folder_.path()})), expected);
  EXPECT_EQ(names(examine({.path = folder_.write("a", "x")})), expected);
}

TEST_F(DoctorTest, NamesWhatThisBuildLacks) {
  const DoctorOptions here{.folder = folder_.path() + "/bin"};
  std::string text = "Lowtide " + std::string(version());
  if (Ring::built_in()) text += " with io_uring";
  if (Transport::built_in()) text += Ring::built_in() ? " and http" : " with http";
  text += Ring::built_in() || Transport::built_in() ? ", without " : " without ";
  if (!Ring::built_in()) text += "io_uring, ";
  if (!Transport::built_in()) text += "http, ";
  EXPECT_EQ(fact("build", here).value, text + "the command and the guard library");
  EXPECT_EQ(fact("build", here).state, FactState::note);
  EXPECT_NE(fact("build", here).advice, "");

  folder_.write("bin/lowtide", "");
  folder_.write("lib/lowtide/liblowtide_guard.so", "");
  const Fact found = fact("build", here);
  if (!Ring::built_in()) GTEST_SKIP() << "built without liburing";
  if (!Transport::probe().empty()) GTEST_SKIP() << "no http: " << Transport::probe();
  EXPECT_EQ(found.value, "Lowtide " + std::string(version()) +
                             " with io_uring, http, the command and the guard library");
  EXPECT_EQ(found.state, FactState::good);
  EXPECT_EQ(found.advice, "");
}

TEST_F(DoctorTest, SaysUnknownWhereNothingCanBeRead) {
  for (const char* name : {"kernel", "memory", "open_files", "locked_memory", "huge_pages"}) {
    const Fact found = fact(name);
    EXPECT_EQ(found.state, FactState::unknown) << name;
    EXPECT_EQ(found.value, "unknown") << name;
    EXPECT_NE(found.detail, "") << name;
  }
  const DoctorOptions here{.path = folder_.write("a", pattern(9000))};
  EXPECT_EQ(fact("device", here).state, FactState::unknown);
  EXPECT_EQ(fact("read_ahead", here).state, FactState::unknown);
}

TEST_F(DoctorTest, NamesTheSysctlThatForbidsTheRing) {
  const sys::Fault fault(sys::table.ring_init, &no_ring);
  if (Ring::probe() == "built without liburing") GTEST_SKIP() << "built without liburing";
  folder_.write("proc/sys/kernel/io_uring_disabled", "2\n");
  Fact found = fact("io_uring");
  EXPECT_EQ(found.state, FactState::bad);
  EXPECT_NE(found.value.find("kernel.io_uring_disabled=2"), std::string::npos) << found.value;
  EXPECT_NE(found.detail.find("Operation not permitted"), std::string::npos) << found.detail;

  folder_.write("proc/sys/kernel/io_uring_disabled", "0\n");
  folder_.write("proc/self/status", "Seccomp:\t2\n");
  found = fact("io_uring");
  EXPECT_EQ(found.value, "forbidden by a seccomp filter");
  EXPECT_NE(found.advice, "");

  folder_.write("proc/self/status", "Seccomp:\t0\n");
  EXPECT_EQ(fact("io_uring").value, "not usable");
  EXPECT_EQ(find(examine(), "choice").state, FactState::note);
}

template <int kErr>
int failing(int, const sys::CachestatRange*, sys::Cachestat*) {
  errno = kErr;
  return -1;
}

TEST_F(DoctorTest, TellsAMissingCachestatFromAForbiddenOne) {
  const DoctorOptions here{.path = folder_.write("a", pattern(9000))};
  {
    const sys::Fault fault(sys::table.cachestat, &failing<ENOSYS>);
    EXPECT_EQ(fact("cachestat").value, "missing");
    EXPECT_EQ(fact("residency", here).state, FactState::unknown);
  }
  const sys::Fault fault(sys::table.cachestat, &failing<EPERM>);
  EXPECT_EQ(fact("cachestat").value, "not usable for every file");
  const Fact found = fact("residency", here);
  EXPECT_EQ(found.state, FactState::unknown);
  EXPECT_NE(found.detail.find("EPERM"), std::string::npos) << found.detail;
}

TEST_F(DoctorTest, NamesTheFileThatLimitsMemoryAndWhatFollows) {
  folder_.write("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n");
  EXPECT_EQ(fact("memory").value, "16 GiB");
  EXPECT_EQ(fact("memory_limit").value, "none");
  EXPECT_EQ(fact("default_memory").value, "256 MiB");

  folder_.write("proc/self/cgroup", "0::/job\n");
  folder_.write("proc/self/mountinfo",
                "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
  folder_.write("cgroup/job/memory.max", "1073741824\n");
  const Fact limit = fact("memory_limit");
  EXPECT_EQ(limit.state, FactState::note);
  EXPECT_EQ(limit.value, "1 GiB");
  EXPECT_EQ(limit.detail.find(folder_ / "cgroup/job/memory.max"), 0u) << limit.detail;
  EXPECT_EQ(fact("default_memory").value, "128 MiB");
  EXPECT_EQ(fact("default_memory").detail, "an eighth of the cgroup's limit");
  EXPECT_EQ(fact("default_memory", {.memory_bytes = 1 << 20}).value, "1 MiB");
}

TEST_F(DoctorTest, ReadsLimitsAndHugePages) {
  folder_.write("proc/self/limits",
                "Max locked memory         8388608              unlimited            bytes\n"
                "Max open files            256                  4096                 files\n");
  folder_.write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  EXPECT_EQ(fact("locked_memory").value, "8 MiB");
  EXPECT_EQ(fact("open_files").state, FactState::note);
  EXPECT_EQ(fact("open_files").advice, "ulimit -n 4096 allows more");
  folder_.write("proc/self/limits",
                "Max open files            256                  256                  files\n");
  EXPECT_EQ(fact("open_files").advice, "only root can raise it: ulimit -Hn 1024");
  EXPECT_EQ(fact("huge_pages").state, FactState::note);
  folder_.write("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
  EXPECT_EQ(fact("huge_pages").state, FactState::good);
}

TEST_F(DoctorTest, JudgesTheReadAheadOfTheDeviceBehindThePath) {
  const std::string file = folder_.write("a", pattern(9000));
  struct stat facts {};
  ASSERT_EQ(::stat(file.c_str(), &facts), 0);
  const std::string setting = "sys/class/bdi/" + std::to_string(major(facts.st_dev)) + ":" +
                              std::to_string(minor(facts.st_dev)) + "/read_ahead_kb";
  folder_.write(setting, "8192\n");
  const Fact much = fact("read_ahead", {.path = file});
  EXPECT_EQ(much.state, FactState::bad);
  EXPECT_EQ(much.value, "8 MiB");
  const std::string times = std::to_string((8 << 20) / page_bytes()) + " times";
  EXPECT_NE(much.detail.find(times), std::string::npos) << much.detail;
  EXPECT_NE(much.advice.find("echo 128 > " + (folder_ / setting)), std::string::npos);
  folder_.write(setting, "128\n");
  EXPECT_EQ(fact("read_ahead", {.path = file}).state, FactState::good);
  folder_.write(setting, "512\n");
  EXPECT_EQ(fact("read_ahead", {.path = file}).state, FactState::note);
}

TEST_F(DoctorTest, OpensAFileAsWhatItIsAndSaysWhatWasChosen) {
  const std::string npy = folder_.write("m.npy", npy_text("<f4", {100, 10}, pattern(4000)));
  EXPECT_EQ(fact("choice", {.path = npy}).value.find("engine memory, cache "), 0u);
  const std::string any = folder_.write("notes.txt", "some words");
  EXPECT_EQ(fact("choice", {.path = any}).value.find("engine memory, cache "), 0u);
  const std::string big = folder_.write("b.bin", pattern(4 << 20));
  const Fact chosen = fact("choice", {.path = big, .memory_bytes = 1 << 20});
  EXPECT_EQ(chosen.value.find("engine memory"), std::string::npos) << chosen.value;
  EXPECT_NE(chosen.detail, "");
  const Fact nothing = fact("choice", {.path = folder_.write("empty.bin", "")});
  EXPECT_EQ(nothing.state, FactState::unknown);
  EXPECT_NE(nothing.detail.find("empty"), std::string::npos) << nothing.detail;
}

TEST_F(DoctorTest, RefusesOnlyAPathThatIsNotThere) {
  EXPECT_THROW((void)examine({.path = folder_ / "missing"}), IoError);
  EXPECT_THROW((void)examine({.path = ""}), IoError);
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0644), 0);
  EXPECT_EQ(fact("path", {.path = fifo}).state, FactState::bad);
  EXPECT_EQ(fact("choice", {.path = fifo}).state, FactState::unknown);
}

TEST_F(DoctorTest, KnowsLittleOfAFileThatItMayNotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make a file that another owns";
  if (!children_work()) GTEST_SKIP() << "a child of this build cannot allocate";
  const std::string path = folder_.write("a", pattern(9000));
  ASSERT_EQ(::chmod(path.c_str(), 0400), 0);
  const std::string said = as_nobody([&path] {
    const Facts facts = examine({.path = path});
    return find(facts, "path").detail + "|" + fact_state_word(find(facts, "direct_io").state) +
           "|" + fact_state_word(find(facts, "choice").state);
  });
  EXPECT_EQ(said, "open " + path + ": Permission denied|unknown|unknown");
}

TEST(StorageWords, AreOfTheRightKind) {
  EXPECT_EQ(storage_words("ext4").state, FactState::good);
  EXPECT_EQ(storage_words("overlay").state, FactState::bad);
  EXPECT_NE(storage_words("overlay").advice, "");
  EXPECT_NE(storage_words("nfs4").detail.find("network"), std::string::npos);
  EXPECT_NE(storage_words("fuse.sshfs").detail.find("FUSE"), std::string::npos);
  EXPECT_NE(storage_words("tmpfs").detail.find("memory"), std::string::npos);
  EXPECT_NE(storage_words("9p").detail.find("virtual machine"), std::string::npos);
  for (const char* type : {"", "0x12345", "newfs"}) {
    EXPECT_EQ(storage_words(type).state, FactState::unknown) << type;
  }
}

TEST(Conclusion, SaysWhatIsUsedAndTheOneThingThatHelpsMost) {
  Facts facts = {{"io_uring", FactState::bad, "not usable", "", "allow it"},
                 {"file_system", FactState::note, "nfs", "", "copy it to a disk"},
                 {"read_ahead", FactState::bad, "8 MiB", "", "use less"},
                 {"choice", FactState::note, "engine pread, cache drop", "", "more memory"}};
  EXPECT_EQ(conclusion_of(facts),
            "Lowtide will use engine pread, cache drop. To make it faster: allow it.");
  facts.erase(facts.begin());
  EXPECT_EQ(conclusion_of(facts),
            "Lowtide will use engine pread, cache drop. To make it faster: copy it to a disk.");
  facts.erase(facts.begin());  // the read-ahead costs maps, and the choice was made without a file
  EXPECT_EQ(conclusion_of(facts),
            "Lowtide will use engine pread, cache drop. Nothing found here would make it "
            "faster.");
  facts.push_back({"path", FactState::good, "m.npy", "a file of 3 MiB", ""});
  EXPECT_EQ(conclusion_of(facts),
            "Lowtide will use engine pread, cache drop, for m.npy. To make it faster: more "
            "memory.");
  facts[1].value = "engine memory, cache keep";
  EXPECT_EQ(conclusion_of(facts),
            "Lowtide will use engine memory, cache keep, for m.npy. Nothing found here would "
            "make it faster.");
}

}  // namespace
}  // namespace lowtide::doctor_test
