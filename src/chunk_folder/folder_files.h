// folder_files.h - the files of a folder, on the local disk or on a server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/extent.h"

namespace lowtide {

// Files are named by their path in the folder: "a/b/zarr.json". All of it throws IoError. One
// thread.
class FolderFiles {
 public:
  struct Text {
    std::string text;
    Shard shard;
  };
  // Bytes of a file.
  struct Range {
    std::uint64_t offset_bytes = 0, size_bytes = 0;
  };
  using Wanted = std::function<Range(const Shard& shard)>;
  using Found =
      std::function<void(std::size_t name, const Shard& shard, std::span<const std::byte> bytes)>;

  virtual ~FolderFiles() = default;

  // The folder as messages name it, without a '/' at its end.
  [[nodiscard]] virtual const std::string& path() const = 0;
  // All of a file; nullopt if it does not exist. Throws FormatError for more than `most_bytes`.
  [[nodiscard]] virtual std::optional<Text> read(const std::string& name,
                                                 std::uint64_t most_bytes) const = 0;
  // The names of the folders in the folder `inside`, "" or "a/b", that may have metadata; sorted.
  [[nodiscard]] virtual std::vector<std::string> folders_in(const std::string& inside) const = 0;
  // For each file that exists, in the order of `names`: asks which bytes of it are wanted, reads
  // them, and passes them on with the index of the name. Both functions may throw.
  virtual void look(std::span<const std::string> names, const Wanted& wanted,
                    const Found& found) const = 0;
};

}  // namespace lowtide
