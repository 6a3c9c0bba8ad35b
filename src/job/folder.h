// folder.h - the hidden folder of a job beside its destination, and how a result gets its name.
//
// A result that is one file, or a pair, is written by a writer straight to its name (writer/). A
// result that is a folder grows inside the job folder, in "result", and is renamed as a whole. An
// old folder is exchanged for the new one at one moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/facts.h"
#include "os/paths.h"

namespace lowtide {

// What stood at a destination when a plan was made, and what may be done there. Immutable.
struct Destination {
  std::string path;     // absolute, as given
  bool folder = false;  // the result is a folder
  bool overwrite = false;
  // Unless it may be overwritten: nothing. What stands there then is the result, or is refused.
  std::optional<PathStamp> before = std::nullopt;

  // Throws what plan_shuffle says about destinations, but does not refuse one that exists.
  // `files` are what the source consists of.
  [[nodiscard]] static Destination plan(const std::string& path, bool folder, bool overwrite,
                                        const std::vector<std::string>& files);
  void add_to(Facts* facts) const;
  // What stood there, and whether it may go. Not a part of a plan's hash: the same call after a
  // crash must find the folder of the same job, even if the result has got its name in between.
  void add_before_to(Facts* facts) const;
  [[nodiscard]] static Destination of(const Facts& facts);

  // Whether something is there that was not when the plan was made.
  [[nodiscard]] bool changed() const;
  // Call it right before a result gets its name. Throws IoError(EEXIST) if something has taken it.
  void check_free() const;
};

[[noreturn]] void refuse_existing(const std::string& path);

class JobFolder {
 public:
  JobFolder() = default;
  // `hash` is that of the plan.
  JobFolder(Destination destination, std::uint64_t hash);

  [[nodiscard]] const Destination& destination() const { return destination_; }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string result() const { return path_ + "/result"; }

  // Makes it, with the folders of the result.
  void make(const std::vector<std::string>& inside = {}) const;
  // Gives the folder "result" the name of the destination, without what is unfinished in it. Throws
  // IoError; of two tasks that do so at the same time, one gets ENOENT.
  void publish() const;
  // Removes it with all that is in it. Throws IoError.
  void remove() const;

 private:
  Destination destination_;
  std::uint64_t hash_ = 0;
  std::string path_;
};

}  // namespace lowtide
