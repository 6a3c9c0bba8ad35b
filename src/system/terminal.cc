#include "lowtide/command/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace lowtide {

bool is_terminal(int descriptor) noexcept {
  return ::isatty(descriptor) == 1;
}

std::uint32_t terminal_columns(int descriptor) noexcept {
  struct winsize size {};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::uint32_t terminal_rows(int descriptor) noexcept {
  struct winsize size {};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

}  // namespace lowtide
