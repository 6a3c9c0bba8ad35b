#include "inspect/doctor.h"
#include "lowtide/error.h"
#include "os/file.h"
#include "os/residency.h"
#include "os/ring.h"
#include "system/kernel.h"

namespace lowtide {
namespace {

Fact kernel_fact(const SystemRoot& root) {
  const std::optional<std::string> release = kernel_release(root);
  if (!release) return unknown_fact("kernel", "/proc does not report it");
  return {"kernel", FactState::good, *release,
          "features are detected by trying them, never guessed from the release", ""};
}

// What forbids it, as far as that can be seen.
Fact forbidden_ring(const std::string& why, const SystemRoot& root) {
  constexpr const char* kCost =
      "bytes on disk are read by up to 64 threads instead of with 128 reads in flight, which costs "
      "more CPU time per read";
  Fact fact{"io_uring", FactState::bad, "not usable", why + "; " + kCost, ""};
  const std::uint64_t disabled = io_uring_disabled(root).value_or(0);
  if (!Ring::built_in()) {
    fact.value = "not built in";
    fact.advice = "build with LOWTIDE_URING=ON, the default";
  } else if (disabled != 0) {
    fact.value = "forbidden by the sysctl kernel.io_uring_disabled=" + std::to_string(disabled);
    fact.advice = disabled == 1 ? "join the group of kernel.io_uring_group, or as root: sysctl "
                                  "kernel.io_uring_disabled=0"
                                : "as root: sysctl kernel.io_uring_disabled=0";
  } else if (calls_are_filtered(root).value_or(false)) {
    fact.value = "forbidden by a seccomp filter";
    fact.advice =
        "containers: allow io_uring_setup and io_uring_enter in the seccomp profile (Docker: "
        "--security-opt seccomp=profile.json)";
  }
  return fact;
}

Fact ring_fact(const SystemRoot& root) {
  const std::string why_not = Ring::probe();
  if (!why_not.empty()) return forbidden_ring(why_not, root);
  return {"io_uring", FactState::good, "usable", "bytes on disk are read with 128 reads in flight",
          ""};
}

Fact cachestat_fact() {
  constexpr const char* kName = "cachestat";
  try {
    const File self("/proc/self/exe");
    std::string why;
    if (residency(self, 0, 0, &why)) {
      return {
          kName, FactState::good, "usable",
          "the kernel reports what is in the page cache, so cached bytes are copied and only the "
          "rest is fetched",
          ""};
    }
    if (why.find("before Linux 6.5") != std::string::npos) {
      return {kName, FactState::note, "missing",
              why +
                  "; instead, a few reads are timed when a file is opened, and later changes go "
                  "unnoticed",
              "use Linux 6.5 or later, which reports what is cached"};
    }
    return {kName, FactState::note, "not usable for every file", why,
            "name a file to see whether it works for that one"};
  } catch (const IoError& error) {
    return unknown_fact(kName, error.what());
  }
}

}  // namespace

void add_kernel_facts(const SystemRoot& root, Facts* facts) {
  facts->push_back(kernel_fact(root));
  facts->push_back(ring_fact(root));
  facts->push_back(cachestat_fact());
}

}  // namespace lowtide
