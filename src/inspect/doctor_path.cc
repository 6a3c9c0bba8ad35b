#include <memory>

#include "inspect/doctor.h"
#include "inspect/storage.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "os/file.h"
#include "os/paths.h"
#include "os/residency.h"
#include "system/device.h"
#include "system/mount.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kUsualReadAheadBytes = 128 << 10;
constexpr std::uint64_t kMuchReadAheadBytes = 1 << 20;

// The file at a path; null, with the reason, for a folder and for a file that cannot be opened.
struct Opened {
  std::unique_ptr<File> file;
  std::string why_not;
};

Opened open_path(const std::string& path) {
  if (is_folder(path)) return {nullptr, "this is a folder; name a file in it"};
  try {
    return {std::make_unique<File>(path), ""};
  } catch (const IoError& error) {
    return {nullptr, error.what()};
  }
}

Fact path_fact(const std::string& path, const Opened& opened) {
  if (opened.file) {
    return {"path", FactState::good, path,
            "a file of " + format_bytes(opened.file->shard().size_bytes), ""};
  }
  if (is_folder(path)) return {"path", FactState::good, path, "a folder", ""};
  return {"path", FactState::bad, path, opened.why_not, ""};
}

Fact file_system_fact(const std::optional<FileSystem>& system) {
  if (!system) return unknown_fact("file_system", "neither /proc nor statfs reports it");
  StorageWords words = storage_words(system->type);
  if (!system->point.empty()) {
    words.detail += " (" + system->source + " on " + system->point + ")";
  }
  return {"file_system", words.state, system->type, words.detail, words.advice};
}

Fact device_fact(const Device& device) {
  if (device.name.empty()) {
    return unknown_fact("device", "no local block device was found for this path");
  }
  Fact fact{"device", FactState::good, device.name, "", ""};
  if (!device.rotational) {
    fact.detail = "whether it rotates is unknown";
  } else if (*device.rotational) {
    fact.state = FactState::note;
    fact.detail =
        "reports that it rotates, so random reads wait for the disk's head (a virtual disk may "
        "report this and still be fast)";
    fact.advice =
        "give Lowtide more memory: it then reads more neighbouring rows together, in disk order";
  } else {
    fact.detail = "does not rotate";
  }
  if (!device.scheduler.empty()) fact.detail += "; scheduler " + device.scheduler;
  return fact;
}

Fact read_ahead_fact(const Device& device) {
  if (!device.read_ahead_bytes) {
    return unknown_fact("read_ahead", "/sys does not report read_ahead_kb for this device");
  }
  const std::uint64_t bytes = *device.read_ahead_bytes;
  Fact fact{"read_ahead", FactState::good, format_bytes(bytes), device.read_ahead_source, ""};
  if (bytes <= kUsualReadAheadBytes) {
    fact.detail += "; not more than the usual " + format_bytes(kUsualReadAheadBytes);
    return fact;
  }
  fact.state = bytes > kMuchReadAheadBytes ? FactState::bad : FactState::note;
  fact.detail += "; the usual value is " + format_bytes(kUsualReadAheadBytes) +
                 ". Touching a random page of a mapped file reads " + format_bytes(bytes) + ", " +
                 std::to_string(bytes / page_bytes()) +
                 " times what is needed. Lowtide's own reads are not affected";
  fact.advice = "instead of np.memmap, use Lowtide or MADV_RANDOM; or, as root: echo " +
                std::to_string(kUsualReadAheadBytes / 1024) + " > " + device.read_ahead_source;
  return fact;
}

Fact direct_fact(const Opened& opened) {
  if (!opened.file) return unknown_fact("direct_io", opened.why_not);
  const auto alignment = opened.file->direct_alignment();
  if (!alignment || opened.file->direct_fd() < 0) {
    return {"direct_io", FactState::note, "not possible",
            "this file system refuses O_DIRECT here, so large data is read through the page cache "
            "and dropped afterwards, which costs CPU time",
            ""};
  }
  return {"direct_io", FactState::good,
          "aligned to " + format_bytes(alignment->offset_bytes) + " in the file, " +
              format_bytes(alignment->memory_bytes) + " in memory",
          "O_DIRECT works: large data is read past the page cache", ""};
}

Fact residency_fact(const Opened& opened) {
  if (!opened.file) return unknown_fact("residency", opened.why_not);
  std::string why;
  const auto known = residency(*opened.file, 0, 0, &why);
  const std::uint64_t all = opened.file->shard().size_bytes;
  if (known) {
    return {"residency", FactState::good,
            format_bytes(known->cached_bytes) + " of " + format_bytes(all) + " cached",
            "from cachestat; cached bytes are copied and the rest is fetched", ""};
  }
  const bool forbidden = why.find("EPERM") != std::string::npos;
  return unknown_fact(
      "residency", why + "; instead, a few reads are timed when the file is opened",
      forbidden ? "run as a user who may write the file: cachestat requires it" : "");
}

Fact folio_fact() {
  return unknown_fact(
      "large_folios",
      "the kernel does not report them. With large folios in the page cache (recent kernels), one "
      "touched byte of a mapped file can count as 2 MiB of RSS, whatever madvise was called with",
      "judge np.memmap by RssFile, or read with Lowtide, which maps no data files");
}

}  // namespace

void add_path_facts(const std::string& path, const SystemRoot& root, Facts* facts) {
  const Opened opened = open_path(path);
  const std::optional<FileSystem> system = file_system_of(path, root);
  const Device device = device_of(system.value_or(FileSystem{}), root);
  facts->push_back(path_fact(path, opened));
  facts->push_back(file_system_fact(system));
  facts->push_back(device_fact(device));
  facts->push_back(read_ahead_fact(device));
  facts->push_back(direct_fact(opened));
  facts->push_back(residency_fact(opened));
  facts->push_back(folio_fact());
}

}  // namespace lowtide
