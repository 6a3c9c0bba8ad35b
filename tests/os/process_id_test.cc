#include "os/process_id.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lowtide::process_id_test {
namespace {

TEST(ProcessId, IsTheKernelsInTheParentAndInTheChildOfAFork) {
  EXPECT_EQ(process_id(), ::getpid());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(process_id() == ::getpid() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lowtide::process_id_test
