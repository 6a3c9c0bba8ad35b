#include "inspect/storage.h"

#include <algorithm>
#include <array>

namespace lowtide {
namespace {

struct Kind {
  std::array<std::string_view, 14> types;
  FactState state;
  const char* detail;
  const char* advice;
};

const Kind kKinds[] = {
    {{"ext4", "ext3", "ext2", "xfs", "btrfs", "f2fs", "bcachefs", "vfat", "exfat", "ntfs3"},
     FactState::good,
     "a local disk: Lowtide keeps many reads in flight, and bypasses the page cache for large data",
     ""},
    {{"zfs"},
     FactState::note,
     "ZFS caches in its own memory (ARC), which page cache counters do not show; before 2.3 it has "
     "no direct I/O",
     ""},
    {{"overlay", "aufs"},
     FactState::bad,
     "the layered file system of containers: the bytes are on another file system below, and the "
     "kernel does not report which of them are cached, so reads are timed instead",
     "put the data on a volume (docker run -v /data:/data), which exposes the real file system"},
    {{"tmpfs", "ramfs", "hugetlbfs", "devtmpfs"},
     FactState::note,
     "the data is already in memory and counts as memory; only swap can evict it",
     "read the original from its disk instead of copying it here first"},
    {{"nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "gpfs", "beegfs", "afs", "glusterfs",
      "wekafs", "pvfs2", "panfs"},
     FactState::note,
     "a network file system: each read is a round trip, so the number of reads in flight and their "
     "merging decide the speed; other clients may change the file",
     "give Lowtide more memory (for more read-ahead), or copy the data to a local disk"},
    {{"9p", "virtiofs", "vboxsf", "prl_fs", "drvfs"},
     FactState::bad,
     "a folder of the host shared with a virtual machine: each read is a message to the host",
     "put the data on a disk of the virtual machine"},
    {{"squashfs", "erofs", "iso9660", "cramfs"},
     FactState::note,
     "a read-only image, often compressed: a small read decompresses a whole block, and direct I/O "
     "is usually not possible",
     "unpack the data to a plain file system"},
};

}  // namespace

StorageWords storage_words(std::string_view type) {
  for (const Kind& kind : kKinds) {
    if (!type.empty() &&
        std::find(kind.types.begin(), kind.types.end(), type) != kind.types.end()) {
      return {kind.state, kind.detail, kind.advice};
    }
  }
  if (type == "fuse" || type == "fuseblk" || type.starts_with("fuse.")) {
    return {
        FactState::note,
        "FUSE: a user-space program answers every read, and its threads limit how many run at once",
        "copy the data to a local disk if reads are slow"};
  }
  return {FactState::unknown,
          "Lowtide has no special rule for this file system and reads it like any other", ""};
}

}  // namespace lowtide
