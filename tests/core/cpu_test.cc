#include "core/cpu.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace lowtide {
namespace {

TEST(Cpu, AgreesWithTheKernelAboutAvx2) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  bool listed = false, found = false;
  while (std::getline(cpuinfo, line)) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    listed = true;
    std::istringstream words(line);
    for (std::string word; words >> word;) found = found || word == "avx2";
  }
  if (!listed) GTEST_SKIP() << "/proc/cpuinfo does not list what the processor can do";
  EXPECT_EQ(has_avx2(), found);
}

}  // namespace
}  // namespace lowtide
