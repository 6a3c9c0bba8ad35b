// A machine that shows little: what is hidden is unknown and says why, and is never 0; what is left
// is told and judged.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/error.h"
#include "meter/sampler.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "report/report.h"
#include "support/forked.h"
#include "support/thrown.h"
#include "verdict/summary.h"
#include "verdict/verdict.h"

namespace lowtide::blind_test {
namespace {

// Files whose path has one of these parts cannot be opened.
class Hiding {
 public:
  Hiding(std::vector<std::string> parts, int err) : fault_(sys::table.open, &open) {
    real = fault_.real();
    hidden = std::move(parts);
    hidden_err = err;
  }

 private:
  static int open(const char* path, int flags) {
    for (const std::string& part : hidden) {
      if (std::string(path).find(part) == std::string::npos) continue;
      errno = hidden_err;
      return -1;
    }
    return real(path, flags);
  }

  static inline int (*real)(const char*, int) = nullptr;
  static inline std::vector<std::string> hidden;
  static inline int hidden_err = 0;
  sys::Fault<int (*)(const char*, int)> fault_;
};

// This process, looked at once a second of the trace.
Trace look(const std::vector<std::string>& watch_files = {}) {
  SamplerOptions options;
  options.watch_files = watch_files;
  Sampler sampler(options);
  Trace trace;
  trace.root_pid = ::getpid();
  for (int second = 0; second < 60; ++second) trace.readings.push_back(sampler.take(second));
  trace.ending = Ending{60, 0, sampler.cost_cpu_s()};
  return trace;
}

std::string unknown_of(const Trace& trace) {
  std::string text;
  for (const std::string& sentence : judge(trace).unknown) text += sentence + "\n";
  return text;
}

std::string our_name() {
  return "verdict_tests (pid " + std::to_string(::getpid()) + ")";
}

// The heap is judged all the same.
void expect_judged(const Trace& trace) {
  EXPECT_NE(judge(trace).kind, VerdictKind::too_short);
  EXPECT_GT(peak_of(trace).anon.value_or(0), 0u);
  EXPECT_TRUE(growth_of(trace).anon);
}

TEST(Blind, WithoutSmapsRollupPssIsThatOfTheMapsAndElseUnknown) {
  const Hiding hiding({"/smaps_rollup"}, ENOENT);
  const Trace trace = look();
  EXPECT_NE(unknown_of(trace).find("PSS of " + our_name() +
                                   ": this kernel has no /proc/PID/smaps_rollup\n"),
            std::string::npos)
      << unknown_of(trace);
  EXPECT_EQ(unknown_of(trace).find("list of mapped files"), std::string::npos);
  bool told = false;
  for (const Reading& reading : trace.readings) {
    const Figure& pss = reading.processes.at(0).pss;
    EXPECT_NE(pss.value, 0u);
    EXPECT_FALSE(pss.value && !reading.files);
    told = told || pss.value;
  }
  EXPECT_TRUE(told);
  expect_judged(trace);
}

TEST(Blind, ToAnotherUsersProcessMapsAndDiskReadsAreUnknown) {
  const Hiding hiding({"/smaps", "/io"}, EACCES);
  const Trace trace = look();
  const std::string why = ": no permission: the process belongs to another user\n";
  for (const char* what : {"PSS of ", "list of mapped files of "}) {
    EXPECT_NE(unknown_of(trace).find(what + our_name() + why), std::string::npos)
        << unknown_of(trace);
  }
  const std::string json = json_report(trace);
  EXPECT_NE(json.find("\"disk_bytes\":[null,null,"), std::string::npos);
  EXPECT_NE(json.find("\"pss\":[null,null,"), std::string::npos);
  EXPECT_NE(html_report(trace).find("bytes read: unknown"), std::string::npos);
  expect_judged(trace);
}

TEST(Blind, WithoutCachestatThePageCacheIsUnknown) {
  const TempFolder folder;
  const std::string path = folder.write("data", pattern(5000));
  static int err;
  const sys::Fault fault(
      sys::table.cachestat, +[](int, const sys::CachestatRange*, sys::Cachestat*) {
        errno = err;
        return -1;
      });
  for (const auto& [number, why] :
       {std::pair{ENOSYS, "not available before Linux 6.5"},
        std::pair{EPERM, "forbidden for files this user may not write (EPERM)"}}) {
    err = number;
    const Trace trace = look({path});
    EXPECT_NE(unknown_of(trace).find(std::string("cachestat: ") + why), std::string::npos)
        << unknown_of(trace);
    EXPECT_FALSE(peak_of(trace).page_cache);
    EXPECT_NE(html_report(trace).find("data-key=\"peak.page_cache\">unknown"), std::string::npos);
    expect_judged(trace);
  }
}

TEST(Blind, ToGroupsTheLimitIsUnknown) {
  const Hiding hiding({"/cgroup", "/mountinfo"}, EACCES);
  const Trace trace = look();
  EXPECT_NE(unknown_of(trace).find("memory group: /proc/PID/cgroup cannot be read\n"),
            std::string::npos)
      << unknown_of(trace);
  EXPECT_FALSE(peak_of(trace).group_usage);
  expect_judged(trace);
}

// hidepid=2: the process is there, its folder is not.
TEST(Blind, ToAHiddenProcessItSaysSo) {
  const pid_t child = start_child([] { return ::pause(); });
  {
    const Hiding hiding({"/proc/" + std::to_string(child) + "/"}, ENOENT);
    SamplerOptions options;
    options.pid = child;
    const std::string text = thrown<IoError>([&] { const Sampler sampler(options); });
    EXPECT_NE(text.find("/proc hides the process (hidepid)"), std::string::npos) << text;
    for (const Reading& reading : look().readings) EXPECT_EQ(reading.processes.size(), 1u);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(Blind, ForAMomentItGoesOnAfterwards) {
  Sampler sampler(SamplerOptions{});
  EXPECT_EQ(sampler.take(0).processes.size(), 1u);
  {
    const Hiding hiding({"/proc/"}, EMFILE);
    EXPECT_TRUE(sampler.take(1).processes.empty());
    EXPECT_FALSE(sampler.ended());
  }
  EXPECT_EQ(sampler.take(2).processes.size(), 1u);
}

}  // namespace
}  // namespace lowtide::blind_test
