// write_file.h - one file, open for writing at any place, and the calls that make it durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace lowtide {

// What became of an attempt to lock a file against other writers.
enum class FileLock { taken, held_by_another, unsupported };

// Owns its descriptors (-1: none). Any thread may write; EINTR and short writes are repeated.
// Errors are IoErrors that name `shown`, the path that the user knows: the file itself may have a
// temporary name.
class WriteFile {
 public:
  // Creates `name`, which must not exist: IoError(EEXIST) otherwise.
  [[nodiscard]] static WriteFile create(const std::string& name, const std::string& shown);
  // nullopt if there is none. Refuses all but regular files: EISDIR, or EINVAL with the kind.
  [[nodiscard]] static std::optional<WriteFile> find(const std::string& name,
                                                     const std::string& shown);
  WriteFile(WriteFile&& other) noexcept
      : shown_(std::move(other.shown_)),
        fd_(std::exchange(other.fd_, -1)),
        direct_fd_(std::exchange(other.direct_fd_, -1)) {}
  WriteFile& operator=(WriteFile&&) = delete;
  ~WriteFile();

  // Held until the file is closed. Never waits.
  [[nodiscard]] FileLock lock();
  // The same for one byte, which need not exist, until unlock_byte(). Independent of lock() on a
  // local file system; on others that may lock every byte.
  [[nodiscard]] FileLock lock_byte(std::uint64_t offset_bytes);
  void unlock_byte(std::uint64_t offset_bytes) noexcept;
  // Whether `name` is this file: it may have been renamed, removed or replaced.
  [[nodiscard]] bool is_at(const std::string& name) const;
  [[nodiscard]] std::uint64_t size_bytes() const;
  [[nodiscard]] std::uint32_t permissions() const;
  void set_permissions(std::uint32_t permissions);
  void resize(std::uint64_t size_bytes);
  // Keeps a line of text with the file, as its extended attribute "user.lowtide": contents, size
  // and times stay as they are. False if this file system has no room for it.
  bool keep_note(const std::string& text) noexcept;

  // From then on write() and read_blocks() bypass the page cache where they can. Does nothing if
  // the file system has no direct I/O.
  void open_direct(const std::string& name);
  // Writes all of it. Returns how many of the bytes went into the page cache: those of whole
  // aligned blocks bypass it after open_direct(), if their address is aligned as their offset is.
  std::uint64_t write(std::uint64_t offset_bytes, std::span<const std::byte> bytes);
  void read_exact(std::uint64_t offset_bytes, std::span<std::byte> out) const;
  // Reads whole aligned blocks, past the page cache after open_direct(). Zeros are beyond the end.
  void read_blocks(std::uint64_t offset_bytes, std::span<std::byte> out) const;
  // Starts to read a range into the page cache. Only a hint.
  void read_ahead(std::uint64_t offset_bytes, std::uint64_t size_bytes) noexcept;

  // Starts to write the dirty pages of a range to the disk. Does not wait, except for a queue that
  // is full.
  void start_write_back(std::uint64_t offset_bytes, std::uint64_t size_bytes);
  // Waits until a range is on the disk, then drops its pages. Nothing else is durable afterwards:
  // neither the size of the file nor its name.
  void finish_write_back(std::uint64_t offset_bytes, std::uint64_t size_bytes);
  // The contents and the size of the file are durable.
  void sync();

  static constexpr std::uint64_t kBlockBytes = 4096;  // the alignment of direct writes

 private:
  WriteFile(std::string shown, int fd) : shown_(std::move(shown)), fd_(fd) {}
  void write_all(int fd, std::uint64_t offset_bytes, std::span<const std::byte> bytes);
  [[noreturn]] void fail(int err, const char* op,
                         std::optional<std::uint64_t> offset_bytes = std::nullopt) const;

  std::string shown_;
  int fd_ = -1;
  int direct_fd_ = -1;
};

// Replaces `to` by `from`, which is `file`. Throws IoError.
void rename_file(const WriteFile& file, const std::string& from, const std::string& to,
                 const std::string& shown);
// What keep_note() left with a file; nullopt if there is none, or nothing can be read.
[[nodiscard]] std::optional<std::string> note_of(const std::string& name);
// A file that is not there is not an error. Returns 0 or an errno.
int remove_file(const std::string& name) noexcept;
// Renames, or gives a second name that must not exist. Returns 0 or an errno.
[[nodiscard]] int move_file(const std::string& from, const std::string& to) noexcept;
[[nodiscard]] int link_file(const std::string& from, const std::string& to) noexcept;
// The names in the folder of `path` are durable, as far as its file system can promise it. Throws
// IoError.
void sync_folder_of(const std::string& path, const std::string& shown);

}  // namespace lowtide
