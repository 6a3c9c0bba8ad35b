#include "core/cpu.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace lowtide {
namespace {

TEST(Cpu, AgreesWithTheKernelAboutVectors) {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  bool listed = false, avx2 = false, avx512 = false;
  while (std::getline(cpuinfo, line)) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    listed = true;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      avx2 = avx2 || word == "avx2";
      avx512 = avx512 || word == "avx512f";
    }
  }
  if (!listed) GTEST_SKIP() << "/proc/cpuinfo does not list what the processor can do";
  EXPECT_EQ(has_avx2(), avx2);
  EXPECT_EQ(has_avx512(), avx512);
}

}  // namespace
}  // namespace lowtide
