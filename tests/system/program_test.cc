#include "system/program.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "os/temp_folder.h"

namespace lowtide::program_test {
namespace {

std::string write_program(const TempFolder& folder, const std::string& name,
                          const std::string& bytes, mode_t mode = 0755) {
  std::string path = folder / name;
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(::chmod(path.c_str(), mode), 0);
  return path;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A program of this machine whose PT_INTERP (3) became PT_NULL (0), as a static one has none.
std::string static_program() {
  std::string bytes = bytes_of(executable_path()).substr(0, 4096);
  constexpr std::size_t kHeaders = 64, kHeaderBytes = 56;
  for (std::size_t i = 0; i < static_cast<unsigned char>(bytes[56]); ++i) {
    char& type = bytes[kHeaders + i * kHeaderBytes];
    if (type == 3) type = 0;
  }
  return bytes;
}

TEST(Program, IsFoundAsAShellFindsIt) {
  EXPECT_TRUE(find_program("sh").ends_with("/sh"));
  EXPECT_EQ(find_program("/bin/sh"), "/bin/sh");
  EXPECT_EQ(find_program("no-such-program-here"), "");
  const TempFolder folder;
  EXPECT_EQ(find_program(write_program(folder, "data", "x", 0644)), "");
  EXPECT_EQ(find_program("/"), "");
}

TEST(Program, LinkedDynamicallyTakesAPreload) {
  EXPECT_EQ(preload_obstacle(executable_path()), "");
  EXPECT_EQ(preload_obstacle(find_program("sh")), "");
}

TEST(Program, LinkedStaticallyDoesNot) {
  const TempFolder folder;
  EXPECT_EQ(preload_obstacle(write_program(folder, "static", static_program())),
            "is statically linked");
}

TEST(Program, AScriptIsJudgedByItsInterpreter) {
  const TempFolder folder;
  EXPECT_EQ(preload_obstacle(write_program(folder, "good", "#!/bin/sh\n")), "");
  EXPECT_EQ(preload_obstacle(write_program(folder, "spaces", "#! /bin/sh -e\n")), "");
  const std::string inner = write_program(folder, "static", static_program());
  EXPECT_EQ(preload_obstacle(write_program(folder, "bad", "#!" + inner + "\n")),
            "is run by " + inner + ", which is statically linked");
  const std::string itself = folder / "loop";
  EXPECT_EQ(preload_obstacle(write_program(folder, "loop", "#!" + itself + "\n")), "");
}

TEST(Program, OfAnotherMachineDoesNot) {
  const TempFolder folder;
  std::string bytes = bytes_of(executable_path()).substr(0, 4096);
  bytes[4] = 1;  // 32 bit
  EXPECT_EQ(preload_obstacle(write_program(folder, "small", bytes)),
            "is built for another architecture than lowtide");
}

TEST(Program, CutShortOrEmptyIsLeftToTheKernel) {
  const TempFolder folder;
  EXPECT_EQ(preload_obstacle(write_program(folder, "empty", "")), "");
  EXPECT_EQ(preload_obstacle(write_program(folder, "cut",
                                           "\x7f"
                                           "ELF")),
            "");
  EXPECT_EQ(preload_obstacle(folder / "missing"), "");
}

TEST(Program, WithTheRightsOfAnotherUserDoesNot) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  const TempFolder folder;
  const std::string path = write_program(folder, "raised", bytes_of(executable_path()));
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(path.c_str(), 04755), 0);
  EXPECT_EQ(preload_obstacle(path), "is set-user-id");
  ASSERT_EQ(::chmod(path.c_str(), 02755), 0);
  EXPECT_EQ(preload_obstacle(path), "is set-group-id");
}

}  // namespace
}  // namespace lowtide::program_test
