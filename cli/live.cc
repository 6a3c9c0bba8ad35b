#include "live.h"

#include "lowtide/terminal.h"
#include "terminal.h"

namespace lowtide::cli {
namespace {

constexpr int kError = 2;
constexpr std::uint32_t kFewestRows = 4;

// Setting the region moves the cursor: it is saved before and restored behind.
std::string region(std::uint32_t rows) {
  return "\x1b"
         "7\x1b[1;" +
         std::to_string(rows - 1) +
         "r\x1b"
         "8";
}

std::string at_foot(std::uint32_t rows, const std::string& text) {
  return "\x1b"
         "7\x1b[" +
         std::to_string(rows) + ";1H" + text +
         "\x1b[K\x1b"
         "8";
}

}  // namespace

LiveLine::LiveLine() : next_(Clock::now() + std::chrono::seconds(1)) {}

LiveLine::~LiveLine() {
  if (rows_ == 0) return;
  print_error(
      "\x1b"
      "7\x1b[r\x1b"
      "8" +
      at_foot(rows_, ""));
}

bool LiveLine::is_due() {
  if (!error_output().progress || Clock::now() < next_) return false;
  next_ = Clock::now() + std::chrono::milliseconds(500);
  return true;
}

void LiveLine::show(const std::string& text) {
  const std::uint32_t rows = terminal_rows(kError), columns = terminal_columns(kError);
  if (rows < kFewestRows || columns < 2) return;
  std::string out;
  if (rows_ == 0) {
    // Down by a line that scrolls at the foot, and up again: the cursor is then above the line, in
    // the column where the program left it.
    out =
        "\x1b"
        "D" +
        region(rows) + "\x1b[A";
  } else if (rows != rows_) {
    out = region(rows);
  }
  rows_ = rows;
  const Terminal& on = error_output();
  print_error(out + at_foot(rows, paint(text.substr(0, columns - 1), Tone::dim, on)));
}

}  // namespace lowtide::cli
