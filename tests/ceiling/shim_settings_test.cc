#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ceiling/shim/settings.h"

namespace lowtide::ceiling::shim_settings_test {
namespace {

std::vector<std::string> left_of(std::vector<std::string> variables) {
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  leave_environment(environment.data());
  std::vector<std::string> left;
  for (char** entry = environment.data(); *entry != nullptr; ++entry) left.emplace_back(*entry);
  return left;
}

TEST(ShimSettings, ReadsAllFields) {
  const Settings settings = parse_settings("67108864:dt:2:18446744073709551615:/proc/1/fd/3");
  EXPECT_EQ(settings.limit_bytes, 67108864U);
  EXPECT_TRUE(settings.drop_cache);
  EXPECT_TRUE(settings.tree);
  EXPECT_FALSE(settings.only_this);
  EXPECT_EQ(settings.filters, 2U);
  EXPECT_EQ(settings.page_number, ~std::uint64_t{0});
  EXPECT_STREQ(settings.page_path, "/proc/1/fd/3");
  EXPECT_TRUE(parse_settings("5:n:0:1:").only_this);
}

TEST(ShimSettings, WhatIsNotOursSwitchesItOff) {
  for (const char* text :
       {"", ":", "x", "12", "12:", "12:d", "-5:d:0:1:x", "12:d:0:/proc/1/fd/3"}) {
    EXPECT_EQ(parse_settings(text).limit_bytes, 0U) << text;
  }
  EXPECT_EQ(parse_settings(nullptr).limit_bytes, 0U);
}

TEST(ShimSettings, LeavesTheEnvironmentAsItWasBefore) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(left_of({"A=1", "LD_PRELOAD=/x/guard.so", "LOWTIDE_GUARD=5::/p", "B=2"}),
            (Texts{"A=1", "B=2"}));
  EXPECT_EQ(left_of({"LD_PRELOAD=/x/guard.so:/y/other.so third.so", "LOWTIDE_GUARD=5::/p"}),
            (Texts{"LD_PRELOAD=/y/other.so third.so"}));
  EXPECT_EQ(left_of({"LD_PRELOADED=1", "LOWTIDE_GUARDED=2"}),
            (Texts{"LD_PRELOADED=1", "LOWTIDE_GUARDED=2"}));
}

}  // namespace
}  // namespace lowtide::ceiling::shim_settings_test
