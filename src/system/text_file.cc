#include "system/text_file.h"

#include <fcntl.h>

#include <cerrno>

#include "core/checked.h"
#include "os/sys.h"

namespace lowtide {

std::optional<std::string> read_text(const std::string& path, int* err) {
  constexpr std::size_t kMostBytes = std::size_t{16} << 20;
  constexpr std::size_t kStepBytes = 16384;
  const int fd = sys::table.open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (err != nullptr) *err = errno;
    return std::nullopt;
  }
  std::string text;
  int failed = 0;
  while (text.size() < kMostBytes) {
    const std::size_t before = text.size();
    text.resize(before + kStepBytes);
    const ssize_t got =
        sys::table.pread(fd, text.data() + before, kStepBytes, static_cast<off_t>(before));
    failed = got < 0 ? errno : 0;
    text.resize(before + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (failed == EINTR) continue;
    if (got <= 0) break;
  }
  sys::table.close(fd);
  if (failed != 0) {
    if (err != nullptr) *err = failed;
    return std::nullopt;
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    const std::string_view part = text.substr(0, end);
    if (!part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

std::optional<std::uint64_t> leading_number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (!checked_mul(value, 10, &value) || !checked_add(value, digit, &value)) return std::nullopt;
  }
  return value;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
  const std::optional<std::string> text = read_text(path);
  return text ? leading_number(*text) : std::nullopt;
}

std::optional<std::uint64_t> number_of(std::string_view text, std::string_view key) {
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.starts_with(':')) line.remove_prefix(1);
    if (line.empty() || (line.front() != ' ' && line.front() != '\t')) continue;
    return leading_number(line);
  }
  return std::nullopt;
}

}  // namespace lowtide
