#include <string>

#include "inspect/doctor.h"
#include "lowtide/bytes.h"
#include "os/kernel.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kUsualFiles = 1024;

Fact memory_fact(const SystemRoot& root) {
  const auto physical = physical_bytes(root);
  if (!physical) return unknown_fact("memory", root.proc + "/meminfo does not tell");
  Fact fact{"memory", FactState::good, format_bytes(*physical), "", ""};
  const auto available = available_bytes(root);
  fact.detail = available ? format_bytes(*available) +
                                " can be taken without pushing others out; files under half of "
                                "that stay in the page cache"
                          : "how much is available is unknown: files are read past the page cache";
  return fact;
}

Fact limit_fact(const SystemRoot& root) {
  const auto limit = cgroup_limit(root);
  if (!limit) {
    return {"memory_limit", FactState::good, "none",
            "no memory control group limits this process, or none that can be read", ""};
  }
  const auto physical = physical_bytes(root);
  Fact fact{"memory_limit", FactState::note, format_bytes(limit->bytes), limit->source, ""};
  if (physical && limit->bytes >= *physical) {
    fact.state = FactState::good;
    fact.detail += "; not below physical memory";
    return fact;
  }
  fact.detail += "; page cache that this group brings in counts against it";
  fact.advice = "the cache mode drop keeps what Lowtide reads out of the page cache";
  return fact;
}

Fact default_fact(const DoctorOptions& options, const SystemRoot& root) {
  if (options.memory_bytes != 0) {
    return {"default_memory", FactState::good, format_bytes(options.memory_bytes), "as given", ""};
  }
  const std::uint64_t bytes = default_memory_bytes(root);
  Fact fact{"default_memory", FactState::good, format_bytes(bytes), "", ""};
  const auto limit = cgroup_limit(root);
  const auto physical = physical_bytes(root);
  if (limit && bytes == limit->bytes / 8) {
    fact.state = FactState::note;
    fact.detail = "an eighth of the group's limit";
  } else if (physical && bytes == *physical / 8) {
    fact.state = FactState::note;
    fact.detail = "an eighth of physical memory";
  } else {
    fact.detail = "the most that is taken unasked; less where an eighth of the memory is less";
  }
  fact.advice =
      "give Lowtide more memory: more reads ahead are fetched together, and data that fits is held";
  return fact;
}

std::string limit_text(const std::optional<std::uint64_t>& limit, bool is_bytes) {
  if (!limit) return "unlimited";
  return is_bytes ? format_bytes(*limit) : std::to_string(*limit);
}

Fact process_fact(const char* name, const char* kernel_name, bool is_bytes, const char* detail,
                  const SystemRoot& root) {
  const auto limit = process_limit(kernel_name, root);
  if (!limit) return unknown_fact(name, root.proc + "/self/limits does not tell");
  Fact fact{name, FactState::good, limit_text(limit->soft, is_bytes), detail, ""};
  if (!is_bytes && limit->soft && *limit->soft < kUsualFiles) {
    fact.state = FactState::note;
    const bool more = !limit->hard || *limit->hard > *limit->soft;
    fact.advice = more ? "ulimit -n " + limit_text(limit->hard, is_bytes) + " allows more"
                       : "only root can raise it: ulimit -Hn " + std::to_string(kUsualFiles);
  }
  return fact;
}

Fact huge_page_fact(const SystemRoot& root) {
  const auto mode = huge_page_mode(root);
  if (!mode) return unknown_fact("huge_pages", "built without them, or /sys is hidden");
  if (*mode != "never") {
    return {"huge_pages", FactState::good, *mode,
            "data held in memory lies in pages of 2 MiB: fewer misses when rows are copied", ""};
  }
  return {"huge_pages", FactState::note, *mode,
          "data held in memory lies in pages of 4 KiB: more misses when rows are copied",
          "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
}

}  // namespace

void add_memory_facts(const DoctorOptions& options, const SystemRoot& root, Facts* facts) {
  facts->push_back(memory_fact(root));
  facts->push_back(limit_fact(root));
  facts->push_back(default_fact(options, root));
  facts->push_back(process_fact("open_files", "Max open files", false,
                                "a data set of many shards keeps at most a quarter of them open",
                                root));
  facts->push_back(process_fact("locked_memory", "Max locked memory", true,
                                "kernels before 5.12 count a ring against it; later ones do not",
                                root));
  facts->push_back(huge_page_fact(root));
}

}  // namespace lowtide
