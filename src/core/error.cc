#include "lowtide/error.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "lowtide/bytes.h"

namespace lowtide {
namespace {

std::string describe(int err, const std::string& op, const std::string& path,
                     const std::optional<std::uint64_t>& offset_bytes, const std::string& hint) {
  std::string text = op;
  if (!path.empty()) text += (text.empty() ? "" : " ") + path;
  if (offset_bytes) text += " at byte " + std::to_string(*offset_bytes);
  if (!text.empty()) text += ": ";
  text += std::generic_category().message(err);
  if (!hint.empty()) text += "; " + hint;
  return text;
}

// A caller that lost its errno still gets an `err` that means failure.
int never_zero(int err) {
  return err != 0 ? err : EIO;
}

}  // namespace

IoError::IoError(int err_in, std::string op_in, std::string path_in,
                 std::optional<std::uint64_t> offset_in, const std::string& hint)
    : std::runtime_error(describe(never_zero(err_in), op_in, path_in, offset_in, hint)),
      err(never_zero(err_in)),
      op(std::move(op_in)),
      path(std::move(path_in)),
      offset_bytes(offset_in),
      reason(describe(err, op == "open" ? "" : op, "", offset_bytes, hint)) {}

NoMemory::NoMemory(std::uint64_t size_bytes, const std::string& what_for)
    : text_("out of memory: cannot allocate " + format_bytes(size_bytes) + " for " + what_for +
            "; the machine is short of memory, or a limit of the process (ulimit -v) or of its "
            "cgroup was reached") {}

}  // namespace lowtide
