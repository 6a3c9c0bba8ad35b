#include <string>

#include "inspect/doctor.h"
#include "lowtide/bytes.h"
#include "system/kernel.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kUsualFiles = 1024;

Fact memory_fact(const SystemRoot& root) {
  const auto physical = physical_bytes(root);
  if (!physical) return unknown_fact("memory", root.proc + "/meminfo does not report it");
  Fact fact{"memory", FactState::good, format_bytes(*physical), "", ""};
  const auto available = available_bytes(root);
  fact.detail = available ? format_bytes(*available) +
                                " can be used without displacing other memory; files smaller than "
                                "half of that stay in the page cache"
                          : "available memory is unknown, so files are read past the page cache";
  return fact;
}

Fact limit_fact(const SystemRoot& root) {
  const auto limit = cgroup_limit(root);
  if (!limit) {
    return {"memory_limit", FactState::good, "none",
            "no memory cgroup limits this process, or its limit cannot be read", ""};
  }
  const auto physical = physical_bytes(root);
  Fact fact{"memory_limit", FactState::note, format_bytes(limit->bytes), limit->source, ""};
  if (physical && limit->bytes >= *physical) {
    fact.state = FactState::good;
    fact.detail += "; it is not below physical memory";
    return fact;
  }
  fact.detail += "; the page cache that this group fills counts towards it";
  fact.advice = "use cache drop: what Lowtide reads then leaves nothing in the page cache";
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
    fact.detail = "an eighth of the cgroup's limit";
  } else if (physical && bytes == *physical / 8) {
    fact.state = FactState::note;
    fact.detail = "an eighth of physical memory";
  } else {
    fact.detail = "the usual default; it is lower if an eighth of the memory is less";
  }
  fact.advice =
      "give Lowtide more memory: it then fetches more upcoming reads together, and holds data that "
      "fits";
  return fact;
}

std::string limit_text(const std::optional<std::uint64_t>& limit, bool is_bytes) {
  if (!limit) return "unlimited";
  return is_bytes ? format_bytes(*limit) : std::to_string(*limit);
}

Fact process_fact(const char* name, const char* kernel_name, bool is_bytes, const char* detail,
                  const SystemRoot& root) {
  const auto limit = process_limit(kernel_name, root);
  if (!limit) return unknown_fact(name, root.proc + "/self/limits does not report it");
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
  if (!mode) return unknown_fact("huge_pages", "the kernel has no huge pages, or /sys is hidden");
  if (*mode != "never") {
    return {"huge_pages", FactState::good, *mode,
            "data held in memory uses 2 MiB pages, so copying rows causes fewer TLB misses", ""};
  }
  return {"huge_pages", FactState::note, *mode,
          "data held in memory uses 4 KiB pages, so copying rows causes more TLB misses",
          "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
}

}  // namespace

void add_memory_facts(const DoctorOptions& options, const SystemRoot& root, Facts* facts) {
  facts->push_back(memory_fact(root));
  facts->push_back(limit_fact(root));
  facts->push_back(default_fact(options, root));
  facts->push_back(process_fact("open_files", "Max open files", false,
                                "a data set of many shards opens at most a quarter of this number",
                                root));
  facts->push_back(process_fact(
      "locked_memory", "Max locked memory", true,
      "kernels before 5.12 charge an io_uring ring to it; later kernels do not", root));
  facts->push_back(huge_page_fact(root));
}

}  // namespace lowtide
