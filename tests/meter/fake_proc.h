// fake_proc.h - a /proc of our own, with the processes that a test puts there.
#pragma once

#include <filesystem>
#include <string>

#include "os/temp_folder.h"
#include "system/text_file.h"

namespace lowtide {

class FakeProc {
 public:
  FakeProc() : root_{folder_ / "proc", folder_ / "cgroup"} { folder_.write("proc/meminfo", ""); }

  void process(int pid, int parent, int start = 100, const std::string& name = "x",
               char state = 'S') const {
    file(pid, "stat",
         std::to_string(pid) + " (" + name + ") " + state + " " + std::to_string(parent) +
             " 1 1 0 -1 0 11 0 22 0 0 0 0 0 20 0 1 0 " + std::to_string(start) + " 1000 200\n");
    file(pid, "status",
         "Name:\tx\nVmPTE:\t4 kB\nVmRSS:\t60 kB\nRssAnon:\t10 kB\nRssFile:\t20 kB\nRssShmem:\t30 "
         "kB\nVmSwap:\t0 kB\n");
    file(pid, "io", "rchar: 5\nread_bytes: 6\n");
  }
  void file(int pid, const std::string& name, const std::string& text) const {
    folder_.write("proc/" + std::to_string(pid) + "/" + name, text);
  }
  void children(int pid, const std::string& pids) const {
    file(pid, "task/" + std::to_string(pid) + "/children", pids);
  }
  void end(int pid) const { std::filesystem::remove_all(root_.proc + "/" + std::to_string(pid)); }
  [[nodiscard]] const SystemRoot& root() const { return root_; }
  [[nodiscard]] const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
  SystemRoot root_;
};

}  // namespace lowtide
