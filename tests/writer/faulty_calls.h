// faulty_calls.h - trouble at the n-th system call of a writer: killed, no space, an I/O error, an
// interrupt, a short write.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "os/sys.h"

namespace lowtide {

enum class Trouble { none, kill, no_space, io_error, interrupt, short_write };

struct FaultyState {
  sys::Table real{};
  Trouble trouble = Trouble::none;
  int at = -1;
  std::vector<std::string> log;
};
inline FaultyState faulty;
inline std::mutex faulty_mutex;  // jobs call from threads

constexpr int kKilledStatus = 77;

// Whether the trouble is due at this call.
inline bool trouble_now(const char* name) {
  const std::lock_guard lock(faulty_mutex);
  const bool now = static_cast<int>(faulty.log.size()) == faulty.at;
  faulty.log.emplace_back(name);
  if (now && faulty.trouble == Trouble::kill) ::_exit(kKilledStatus);
  return now && faulty.trouble != Trouble::none;
}

template <auto Entry, typename Function>
struct FaultyEntry;
template <auto Entry, typename Result, typename... Args>
struct FaultyEntry<Entry, Result (*)(Args...)> {
  static inline const char* name = "";
  static Result call(Args... args) {
    if (!trouble_now(name) || faulty.trouble == Trouble::short_write)
      return (faulty.real.*Entry)(args...);
    if (std::string_view(name) == "close") (faulty.real.*Entry)(args...);  // also if it fails
    errno = faulty.trouble == Trouble::no_space   ? ENOSPC
            : faulty.trouble == Trouble::io_error ? EIO
                                                  : EINTR;
    return -1;
  }
};

inline ssize_t faulty_pwrite(int fd, const void* from, std::size_t size, off_t offset) {
  if (!trouble_now("pwrite")) return faulty.real.pwrite(fd, from, size, offset);
  if (faulty.trouble == Trouble::short_write)
    return faulty.real.pwrite(fd, from, size > 1 ? size / 2 : size, offset);
  errno = faulty.trouble == Trouble::no_space   ? ENOSPC
          : faulty.trouble == Trouble::io_error ? EIO
                                                : EINTR;
  return -1;
}

// Replaces the calls of a writer while it lives.
class FaultyCalls {
 public:
  explicit FaultyCalls(Trouble trouble = Trouble::none, int at = -1) {
    faulty.real = sys::table;
    faulty.trouble = trouble;
    faulty.at = at;
    faulty.log.clear();
    replace<&sys::Table::open>("open");
    replace<&sys::Table::create>("create");
    replace<&sys::Table::close>("close");
    replace<&sys::Table::rename>("rename");
    replace<&sys::Table::rename_how>("rename_how");
    replace<&sys::Table::mkdir>("mkdir");
    replace<&sys::Table::rmdir>("rmdir");
    replace<&sys::Table::pread>("pread");
    replace<&sys::Table::statx>("statx");
    replace<&sys::Table::sync_file_range>("sync_file_range");
    replace<&sys::Table::fsync>("fsync");
    replace<&sys::Table::fdatasync>("fdatasync");
    replace<&sys::Table::ftruncate>("ftruncate");
    replace<&sys::Table::fchmod>("fchmod");
    replace<&sys::Table::fsetxattr>("fsetxattr");
    replace<&sys::Table::getxattr>("getxattr");
    replace<&sys::Table::flock>("flock");
    replace<&sys::Table::unlink>("unlink");
    replace<&sys::Table::link>("link");
    replace<&sys::Table::fadvise>("fadvise");
    sys::table.pwrite = faulty_pwrite;
  }
  ~FaultyCalls() { sys::table = faulty.real; }
  FaultyCalls(const FaultyCalls&) = delete;
  FaultyCalls& operator=(const FaultyCalls&) = delete;

  [[nodiscard]] static const std::vector<std::string>& log() { return faulty.log; }

 private:
  template <auto Entry>
  static void replace(const char* name) {
    using Function = std::remove_reference_t<decltype(sys::table.*Entry)>;
    FaultyEntry<Entry, Function>::name = name;
    sys::table.*Entry = FaultyEntry<Entry, Function>::call;
  }
};

// A real sync waits for the disk, and thousands of them tell no more than their order does.
class QuickSyncs {
 public:
  static int done(int) { return 0; }

 private:
  sys::Fault<int (*)(int)> fsync_{sys::table.fsync, &done};
  sys::Fault<int (*)(int)> fdatasync_{sys::table.fdatasync, &done};
  sys::Fault<int (*)(int, off_t, off_t, unsigned)> range_{
      sys::table.sync_file_range, +[](int, off_t, off_t, unsigned) { return 0; }};
};

inline std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return "(none)";
  std::string text(std::filesystem::file_size(path), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

inline std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename());
  return names;
}

// Runs `body` with this trouble: 0 (it returned), 1 (it threw) or kKilledStatus. Only a kill takes
// a child: otherwise the process that failed goes on, as that of a user would.
inline int in_trouble(Trouble trouble, int at, const std::function<void()>& body) {
  const auto run = [&] {
    const FaultyCalls calls(trouble, at);
    try {
      body();
    } catch (const std::exception&) {
      return 1;
    }
    return 0;
  };
  if (trouble != Trouble::kill) return run();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run());
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  return WEXITSTATUS(status);
}

// Runs `write` with every trouble at every one of its system calls. `prepare` makes what is there
// before, `check(whole)` says what may be there afterwards (whole: the new content only), and a
// second `write` without trouble must then leave the new content and no other file.
inline void expect_all_or_nothing(const std::string& folder, const std::function<void()>& prepare,
                                  const std::function<void()>& write,
                                  const std::function<void(bool whole)>& check) {
  prepare();
  std::vector<std::string> made;  // the calls of a run without trouble
  {
    const FaultyCalls calls;
    write();
    made = FaultyCalls::log();
  }
  check(true);
  const std::size_t files = names_in(folder).size();
  EXPECT_GT(made.size(), 10u);
  for (const Trouble trouble : {Trouble::kill, Trouble::no_space, Trouble::io_error,
                                Trouble::interrupt, Trouble::short_write}) {
    for (int at = 0; at < static_cast<int>(made.size()); ++at) {
      const bool writes = made[static_cast<std::size_t>(at)] == "pwrite";
      if (trouble == Trouble::short_write && !writes) continue;
      SCOPED_TRACE("trouble " + std::to_string(static_cast<int>(trouble)) + " at call " +
                   std::to_string(at));
      prepare();
      const int status = in_trouble(trouble, at, write);
      const bool must_work = trouble == Trouble::interrupt || trouble == Trouble::short_write;
      EXPECT_TRUE(status == 0 || !must_work) << status;
      check(status == 0);
      write();
      check(true);
      EXPECT_EQ(names_in(folder).size(), files);
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace lowtide
