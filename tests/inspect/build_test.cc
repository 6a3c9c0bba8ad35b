#include "lowtide/command/build.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/cpu.h"
#include "http/transport.h"
#include "lowtide/version.h"
#include "os/ring.h"
#include "os/temp_folder.h"

namespace lowtide {
namespace {

TEST(Build, NamesItsVersionAndCompiler) {
  const Build found = build();
  EXPECT_EQ(found.version, version());
  EXPECT_EQ(std::ranges::count(found.version, '.'), 2) << found.version;
  EXPECT_TRUE(found.compiler.starts_with("GCC ") || found.compiler.starts_with("Clang "));
  EXPECT_EQ(std::ranges::count(found.compiler, ' '), 1) << found.compiler;
  EXPECT_NE(found.target.find(", "), std::string::npos) << found.target;
  EXPECT_EQ(found.io_uring, Ring::probe() != "built without liburing");
  EXPECT_EQ(found.http, Transport::built_in());
  EXPECT_EQ(found.why_no_http, Transport::probe());
  if (!found.http) {
    EXPECT_NE(found.why_no_http.find("no HTTP support"), std::string::npos);
  }
}

TEST(Build, RunsTheVectorCodeThatItHasAndTheProcessorKnows) {
  const Build found = build();
  EXPECT_EQ(found.vector_used.has_value(), has_avx2());
  if (found.vector_used) {
    EXPECT_EQ(std::ranges::count(found.vector_paths, *found.vector_used), 1);
  }
}

TEST(Build, FindsTheCommandAndTheLibraryOfGuardWhereTheyAreInstalled) {
  const TempFolder folder;
  const std::string bin = folder / "bin";
  EXPECT_EQ(build(bin).command, std::nullopt);
  EXPECT_EQ(build(bin).guard, std::nullopt);
  const std::string command = folder.write("bin/lowtide", "");
  folder.write("lib/lowtide/liblowtide_guard.so", "");
  EXPECT_EQ(build(bin).command, command);
  EXPECT_EQ(build(bin).guard, bin + "/../lib/lowtide/liblowtide_guard.so");
}

}  // namespace
}  // namespace lowtide
