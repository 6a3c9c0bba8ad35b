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
     "a local disk: many reads in flight, past the page cache where the data is big",
     ""},
    {{"zfs"},
     FactState::note,
     "ZFS caches in its own memory (ARC), which no count of the page cache shows; before 2.3 it "
     "has no direct I/O",
     ""},
    {{"overlay", "aufs"},
     FactState::bad,
     "the layered file system of containers: the bytes lie on another one below, and the kernel "
     "does not tell what of them is cached, so reads are timed instead",
     "put the data on a volume (docker run -v /data:/data): then the real file system is seen"},
    {{"tmpfs", "ramfs", "hugetlbfs", "devtmpfs"},
     FactState::note,
     "the data is in memory already, counts as such, and nothing can evict it but swap",
     "read the original from its disk instead of copying it here first"},
    {{"nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "gpfs", "beegfs", "afs", "glusterfs",
      "wekafs", "pvfs2", "panfs"},
     FactState::note,
     "a network file system: each read is a round trip, so reads in flight and merging decide; "
     "others may change the file",
     "give Lowtide more memory (more reads ahead), or copy the data to a local disk"},
    {{"9p", "virtiofs", "vboxsf", "prl_fs", "drvfs"},
     FactState::bad,
     "a folder of the host, seen from a virtual machine: each read is a message to it",
     "put the data on a disk of the virtual machine"},
    {{"squashfs", "erofs", "iso9660", "cramfs"},
     FactState::note,
     "a read-only image, often compressed: a small read unpacks a whole block, and direct I/O is "
     "mostly not possible",
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
    return {FactState::note,
            "FUSE: a program serves every read, and its threads bound how many are in flight",
            "copy the data to a local disk if reads are slow"};
  }
  return {FactState::unknown,
          "a file system that Lowtide knows nothing of: it is read like any other", ""};
}

}  // namespace lowtide
