#include "writer/published_file.h"

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "core/hash.h"
#include "lowtide/error.h"
#include "os/paths.h"

namespace lowtide {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHiddenEnd = ".lowtide-part";
constexpr std::size_t kLongestName = 255;  // of every common file system
constexpr std::size_t kMostExtra = 20;     // that a hidden name adds, with what callers append
constexpr int kTries = 100;

// What it was signed as: any later write changes the size or the time.
std::string signature(std::uint64_t job, const PathStamp& stamp) {
  return "job " + std::to_string(job) + " " + std::to_string(stamp.size_bytes) + " " +
         std::to_string(stamp.mtime_ns);
}

[[noreturn]] void throw_busy(const std::string& path) {
  throw IoError(EBUSY, "create", path, std::nullopt, "another writer has it open; close it first");
}

[[noreturn]] void throw_gone(const std::string& path) {
  throw IoError(ESTALE, "write", path, std::nullopt,
                "its writer has published or abandoned it, or was killed");
}

}  // namespace

// Absolute, so that a program may change its folder meanwhile.
std::string PublishedFile::target_path(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? whole_path(path) : real.string();
}

std::string PublishedFile::hidden_path(const std::string& target) {
  const fs::path path(target);
  std::string name = path.filename();
  if (name.size() + kMostExtra > kLongestName) {
    std::uint64_t hash = 0;
    for (const char c : name) hash = hash_with(hash, static_cast<unsigned char>(c));
    name = std::to_string(hash);
  }
  return path.parent_path() / ("." + name + kHiddenEnd);
}

bool PublishedFile::is_hidden(std::string_view name) {
  return name.starts_with('.') && name.ends_with(kHiddenEnd);
}

bool PublishedFile::is_signed(const std::string& path, std::uint64_t job) {
  const std::optional<PathStamp> now = stamp_of(path);
  return now && !now->folder && note_of(path) == signature(job, *now);
}

PublishedFile::PublishedFile(std::string path, Start start, std::uint64_t chunk_bytes)
    : path_(std::move(path)), joined_(start == Start::join) {
  if (path_.empty()) throw std::invalid_argument("create: the path is empty; name a file");
  if (path_.find('\0') != std::string::npos || path_.ends_with('/')) {
    throw std::invalid_argument("create: \"" + path_.substr(0, path_.find('\0')) +
                                "\" is not the name of a file: it ends with / or contains a NUL "
                                "byte");
  }
  target_ = target_path(path_);
  hidden_ = hidden_path(target_);
  auto opened = std::make_shared<WriteFile>(open(start));
  here_ = std::make_unique<PerProcess<Here>>(
      [opened, chunk_bytes] { return std::make_unique<Here>(std::move(*opened), chunk_bytes); });
  (void)here_->get();
}

PublishedFile::~PublishedFile() {
  Here* const here = here_ ? here_->find() : nullptr;
  if (here == nullptr || published_ || joined_) return;
  try {
    if (here->file.is_at(hidden_)) (void)remove_file(hidden_);
  } catch (...) {  // the next writer removes it
  }
}

WriteFile PublishedFile::open(Start start) {
  if (start == Start::join) return open_joined();
  std::optional<WriteFile> old = WriteFile::find(target_, path_);
  if (old && old->lock() == FileLock::held_by_another) throw_busy(path_);
  if (!old && start == Start::go_on) throw IoError(ENOENT, "open", path_);
  if (!old || start == Start::anew) {
    return open_hidden(old ? std::optional(old->permissions()) : std::nullopt);
  }
  if (!remove_stale(hidden_)) throw_busy(path_);
  published_ = true;
  old->open_direct(target_);
  return std::move(*old);
}

WriteFile PublishedFile::open_joined() {
  std::optional<WriteFile> file = WriteFile::find(hidden_, path_);
  if (!file) throw_gone(path_);
  file->open_direct(hidden_);
  return std::move(*file);
}

WriteFile PublishedFile::open_hidden(std::optional<std::uint32_t> permissions) {
  for (int i = 0; i < kTries; ++i) {
    if (!remove_stale(hidden_)) throw_busy(path_);
    try {
      WriteFile file = WriteFile::create(hidden_, path_);
      // Another writer may have taken it for a stale one in the meantime.
      if (file.lock() == FileLock::held_by_another || !file.is_at(hidden_)) continue;
      try {
        if (permissions) file.set_permissions(*permissions);
        file.open_direct(hidden_);
      } catch (...) {
        (void)remove_file(hidden_);
        throw;
      }
      return file;
    } catch (const IoError& error) {
      if (error.err != EEXIST) throw;
    }
  }
  throw_busy(path_);
}

// False: its writer lives.
bool PublishedFile::remove_stale(const std::string& hidden) {
  std::optional<WriteFile> stale = WriteFile::find(hidden, path_);
  if (!stale) return true;
  if (stale->lock() == FileLock::held_by_another) return false;
  if (!stale->is_at(hidden)) return true;
  const int err = remove_file(hidden);
  if (err != 0) throw IoError(err, "remove", hidden);
  return true;
}

PublishedFile::Here& PublishedFile::here() {
  Here* const here = here_->find();
  if (here != nullptr) return *here;
  throw std::invalid_argument(path_ +
                              ": the writer belongs to the process that created it, and this one "
                              "was forked from it; create one here");
}

template <typename Call>
void PublishedFile::guarded(Call call) {
  Here& mine = here();
  {
    const MutexLock lock(mine.mutex);
    if (mine.failure) {
      throw IoError(mine.failure_err, "write", path_, std::nullopt,
                    "an earlier write failed (" + *mine.failure + "), so nothing is published");
    }
  }
  try {
    call(mine);
  } catch (const IoError& error) {
    const MutexLock lock(mine.mutex);
    if (!mine.failure) {
      mine.failure = error.reason;
      mine.failure_err = error.err;
    }
    throw;
  }
}

void PublishedFile::write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  guarded([&](Here& mine) {
    const std::uint64_t cached = mine.file.write(offset_bytes, bytes);
    mine.behind.wrote(offset_bytes, bytes.size(), cached);
  });
}

void PublishedFile::check_sound() {
  guarded([](Here&) {});
}

void PublishedFile::read_exact(std::uint64_t offset_bytes, std::span<std::byte> out) {
  here().file.read_exact(offset_bytes, out);
}

void PublishedFile::read_blocks(std::uint64_t offset_bytes, std::span<std::byte> out) {
  guarded([&](Here& mine) { mine.file.read_blocks(offset_bytes, out); });
}

void PublishedFile::read_ahead(std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  here().file.read_ahead(offset_bytes, size_bytes);
}

FileLock PublishedFile::lock_byte(std::uint64_t offset_bytes) {
  return here().file.lock_byte(offset_bytes);
}

void PublishedFile::unlock_byte(std::uint64_t offset_bytes) {
  here().file.unlock_byte(offset_bytes);
}

std::uint64_t PublishedFile::size_bytes() {
  return here().file.size_bytes();
}

void PublishedFile::resize(std::uint64_t size_bytes) {
  guarded([&](Here& mine) { mine.file.resize(size_bytes); });
}

void PublishedFile::sync() {
  guarded([this](Here& mine) {
    mine.behind.drain();
    // Nothing depends on it, so a file system that cannot keep it is not an error.
    if (job_ && !published_) {
      if (const std::optional<PathStamp> now = stamp_of(hidden_))
        (void)mine.file.keep_note(signature(*job_, *now));
    }
    mine.file.sync();
    if (joined_ && !mine.file.is_at(hidden_)) throw_gone(path_);
  });
}

void PublishedFile::publish() {
  sync();
  if (published_) return;
  guarded([this](Here& mine) {
    if (!mine.file.is_at(hidden_)) {
      throw IoError(EBUSY, "rename", path_, std::nullopt,
                    "its temporary file was removed or replaced by another writer");
    }
    rename_file(mine.file, hidden_, target_, path_);
    published_ = true;
    sync_folder_of(target_, path_);
  });
}

}  // namespace lowtide
