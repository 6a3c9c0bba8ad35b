// published_file.h - a file that appears whole under its name, or not at all.
//
// It is written under a hidden name beside its target, ".<name>.lowtide-part", and renamed when it
// is complete and durable. A crash at any moment leaves the old file under the name, or the whole
// new one. What a crash leaves under the hidden name is removed by the next writer of the same
// path; a lock on it shows whether its writer still lives.
//
// A published file can go on growing in place, and so can an existing one: bytes beyond what its
// header promises belong to nobody until the header is rewritten.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/mutex.h"
#include "os/per_process.h"
#include "os/write_file.h"
#include "writer/write_behind.h"

namespace lowtide {

// Any thread may write; the other members are for one thread at a time. The first failed write is
// kept: every later call throws it again, so a file with a gap is never published. In the child of
// a fork every call but path() is a std::invalid_argument, and the destructor does nothing.
class PublishedFile {
 public:
  enum class Start {
    anew,       // replaces what is there, when it is published
    go_on,      // in place; IoError(ENOENT) if there is none
    go_on_any,  // in place if there is one, otherwise anew
    join,       // what another process writes anew, which alone publishes and removes it
  };

  // Refuses at once, with an IoError, a target that is a folder or not a regular file, whose folder
  // is missing, or that may not be written, and IoError(EBUSY) if another writer has it open. A
  // link stays a link: the file that it names is replaced. `chunk_bytes` bounds the dirty pages: at
  // most three times as many are held.
  PublishedFile(std::string path, Start start, std::uint64_t chunk_bytes);
  // Removes what has not been published.
  ~PublishedFile();
  PublishedFile(const PublishedFile&) = delete;
  PublishedFile& operator=(const PublishedFile&) = delete;

  // The file behind links that a path names, absolute; and the name under which it is written.
  [[nodiscard]] static std::string target_path(const std::string& path);
  [[nodiscard]] static std::string hidden_path(const std::string& target);
  // Whether the name of a file is one that hidden_path() gives.
  [[nodiscard]] static bool is_hidden(std::string_view name);

  [[nodiscard]] const std::string& path() const { return path_; }  // as the user wrote it
  [[nodiscard]] bool published() const { return published_; }      // is it under its name?

  // Blocks that are aligned in memory as in the file bypass the page cache (O_DIRECT). All others
  // are written behind. Measured for 1 GiB of appended rows under 64 MiB, in five interleaved
  // rounds with the final fsync: 1.5 to 2.2 GiB/s direct with 0.1 s of CPU, 1.0 to 1.5 GiB/s behind
  // with 0.4 s.
  void write(std::uint64_t offset_bytes, std::span<const std::byte> bytes);
  // Throws what write() would throw if an earlier write failed.
  void check_sound();
  void read_exact(std::uint64_t offset_bytes, std::span<std::byte> out);
  // As in WriteFile.
  void read_blocks(std::uint64_t offset_bytes, std::span<std::byte> out);
  void read_ahead(std::uint64_t offset_bytes, std::uint64_t size_bytes);
  // As in WriteFile.
  [[nodiscard]] FileLock lock_byte(std::uint64_t offset_bytes);
  void unlock_byte(std::uint64_t offset_bytes);
  [[nodiscard]] std::uint64_t size_bytes();
  // New bytes are zeros and take no space.
  void resize(std::uint64_t size_bytes);

  // Signs the file as a result of this job before it gets its name, if the file system can keep a
  // note with it. Call it before sync() and publish().
  void sign(std::uint64_t job) { job_ = job; }
  // Whether that job made what is at this path, and nobody has changed it since. False, too, if
  // that cannot be known.
  [[nodiscard]] static bool is_signed(const std::string& path, std::uint64_t job);

  // All bytes written so far are durable, under whichever name the file has. One that was joined
  // must still have its hidden name: IoError(ESTALE) otherwise.
  void sync();
  // sync(), then the file has its name, durably. After the first time this is sync(). A file of
  // several parts calls sync() on each, then publish() on each, the index last.
  void publish();

 private:
  struct Here {
    Here(WriteFile&& opened, std::uint64_t chunk_bytes)
        : file(std::move(opened)), behind(file, chunk_bytes) {}
    WriteFile file;
    WriteBehind behind;
    Mutex mutex;
    std::optional<std::string> failure LOWTIDE_GUARDED_BY(mutex);
    int failure_err LOWTIDE_GUARDED_BY(mutex) = 0;
  };
  [[nodiscard]] WriteFile open(Start start);
  [[nodiscard]] WriteFile open_hidden(std::optional<std::uint32_t> permissions);
  [[nodiscard]] WriteFile open_joined();
  [[nodiscard]] bool remove_stale(const std::string& hidden);
  [[nodiscard]] Here& here();
  // Runs `call` unless an earlier one failed, and keeps its failure.
  template <typename Call>
  void guarded(Call call);

  const std::string path_;
  std::string target_;  // behind links
  std::string hidden_;
  const bool joined_;
  std::atomic<bool> published_ = false;
  std::optional<std::uint64_t> job_;
  std::unique_ptr<PerProcess<Here>> here_;
};

}  // namespace lowtide
