#include "writer/published_pair.h"

#include <cerrno>
#include <optional>

#include "lowtide/error.h"
#include "os/paths.h"
#include "os/write_file.h"

namespace lowtide {
namespace {

// Where an old file is until its pair is published.
struct Aside {
  explicit Aside(const std::string& path) : of(PublishedFile::target_path(path)) {
    hidden = PublishedFile::hidden_path(of);
    name = hidden + "-old";
  }
  std::string of;      // the final name
  std::string hidden;  // of the new file
  std::string name;    // of the old one
};

void throw_unless_done(int err, const char* op, const std::string& path) {
  if (err != 0) throw IoError(err, op, path);
}

// Gives a file its name back. A link to the file that has the name already is only removed: rename
// does nothing for two names of one file.
void bring_back(const Aside& aside) {
  const int err = move_file(aside.name, aside.of);
  if (err != ENOENT) throw_unless_done(err, "rename", aside.of);
  throw_unless_done(remove_file(aside.name), "remove", aside.name);
}

bool is_locked(const std::string& name) {
  std::optional<WriteFile> file = WriteFile::find(name, name);
  return file && file->lock() == FileLock::held_by_another;
}

// The old pair has its names again. The new index goes first: as long as it is there and no trace
// of the old data, recover_pair takes the data for new.
void roll_back(const Aside& data, const Aside& index) {
  throw_unless_done(remove_file(index.hidden), "remove", index.hidden);
  bring_back(data);
  bring_back(index);
  sync_folder_of(index.of, index.of);
}

void remove_asides(const Aside& data, const Aside& index) {
  (void)remove_file(index.name);
  (void)remove_file(data.name);
}

}  // namespace

void recover_pair(const std::string& data_path, const std::string& index_path) {
  const Aside data(data_path);
  const Aside index(index_path);
  if (!path_exists(data.name) && !path_exists(index.name)) return;
  if (is_locked(data.of) || is_locked(data.hidden) || is_locked(index.hidden)) return;
  if (!path_exists(index.of)) {
    const bool can_go_back =
        path_exists(data.name) || path_exists(data.hidden) || !path_exists(index.hidden);
    if (can_go_back) {
      roll_back(data, index);
    } else {  // a file system without links: the new data has its name, and the index is complete
      throw_unless_done(move_file(index.hidden, index.of), "rename", index.of);
    }
  }
  remove_asides(data, index);
}

void publish_pair(PublishedFile& data, PublishedFile& index) {
  const Aside old_data(data.path());
  const Aside old_index(index.path());
  data.sync();
  index.sync();
  const bool had_data = path_exists(old_data.of);
  bool linked = false;
  try {
    const int err = link_file(old_data.of, old_data.name);
    linked = err == 0;
    const bool cannot = err == EPERM || err == EOPNOTSUPP || err == EMLINK || err == ENOENT;
    if (!cannot) throw_unless_done(err, "link", data.path());
    const int moved = move_file(old_index.of, old_index.name);
    if (moved != ENOENT) throw_unless_done(moved, "rename", index.path());
    sync_folder_of(old_index.of, index.path());
    data.publish();
    index.publish();
  } catch (...) {
    // The new pair is whole, though perhaps not durable; or the old data is lost for want of a
    // link.
    const bool stays = index.published() || (data.published() && had_data && !linked);
    if (data.published() && !had_data && !index.published()) (void)remove_file(old_data.of);
    if (stays) {
      remove_asides(old_data, old_index);
    } else {
      try {
        roll_back(old_data, old_index);
      } catch (const IoError&) {  // the next writer does it
      }
    }
    throw;
  }
  remove_asides(old_data, old_index);
}

}  // namespace lowtide
