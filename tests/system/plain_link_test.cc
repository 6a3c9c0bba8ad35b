#include "system/plain_link.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

#include "os/temp_folder.h"
#include "support/thrown.h"

namespace lowtide::plain_link_test {
namespace {

constexpr std::string_view kUnwanted = " :$";

// A variable of the environment for as long as this lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    if (value.empty()) {
      ::unsetenv(name);
    } else {
      ::setenv(name, value.c_str(), 1);
    }
  }
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// A folder whose parents only root and we can write to, which /tmp is not; empty where there is
// none.
std::string safe_folder() {
  const char* const home = std::getenv("HOME");
  for (const char* const parent : {"/run", "/var/lib", home}) {
    if (parent == nullptr) continue;
    std::string path = std::string(parent) + "/lowtide_test_XXXXXX";
    if (::mkdtemp(path.data()) != nullptr) return path;
  }
  return "";
}

TEST(PlainLink, LeadsToTheFileByTheSameNameEachTime) {
  const std::string folder = safe_folder();
  if (folder.empty()) GTEST_SKIP() << "no folder here that only this user can write to";
  const Variable runtime("XDG_RUNTIME_DIR", folder);
  const std::string target = "/opt/My Things: 1/liblowtide_guard.so";
  std::string link;
  try {
    link = plain_link(target, kUnwanted);
  } catch (const std::runtime_error& error) {
    std::filesystem::remove_all(folder);
    GTEST_SKIP() << error.what();
  }
  EXPECT_EQ(link.find_first_of(kUnwanted), std::string::npos);
  EXPECT_TRUE(link.starts_with(folder + "/lowtide/"));
  EXPECT_EQ(std::filesystem::read_symlink(link), target);
  EXPECT_EQ(plain_link(target, kUnwanted), link);
  EXPECT_NE(plain_link(target + "2", kUnwanted), link);
  std::filesystem::remove(link);
  std::filesystem::create_symlink("/etc/passwd", link);  // changed behind our back
  EXPECT_EQ(plain_link(target, kUnwanted), link);
  EXPECT_EQ(std::filesystem::read_symlink(link), target);
  ASSERT_EQ(::chmod((folder + "/lowtide").c_str(), 0777), 0);
  const Variable cache("XDG_CACHE_HOME", "");
  const Variable home("HOME", "");
  EXPECT_THROW((void)plain_link(target, kUnwanted), std::runtime_error);
  std::filesystem::remove_all(folder);
}

// A name below /tmp is free for anybody once it is gone.
TEST(PlainLink, RefusesFoldersInWhichOthersCouldTakeTheName) {
  const TempFolder folder;
  const std::string open = folder / "open";
  std::filesystem::create_directories(open + "/inner");
  ASSERT_EQ(::chmod(open.c_str(), 01777), 0);
  const Variable runtime("XDG_RUNTIME_DIR", open + "/inner");
  const Variable cache("XDG_CACHE_HOME", "/no/such/folder");
  const Variable home("HOME", "");
  const std::string text =
      thrown<std::runtime_error>([&] { (void)plain_link("/a b.so", kUnwanted); });
  EXPECT_NE(text.find("XDG_RUNTIME_DIR"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(open + "/inner/lowtide"));
}

}  // namespace
}  // namespace lowtide::plain_link_test
