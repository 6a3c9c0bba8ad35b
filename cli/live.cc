#include "live.h"

#include "lowtide/command/terminal.h"
#include "terminal.h"

namespace lowtide::cli {
namespace {

constexpr int kError = 2;
constexpr std::uint32_t kFewestRows = 4;
constexpr const char* kSave = "\0337";  // saves the cursor position
constexpr const char* kRestore = "\0338";
constexpr const char* kDown = "\033D";  // one row down, same column; scrolls in the last row
constexpr const char* kUp = "\033[A";

// Setting the scrolling region moves the cursor, so its position is saved and restored.
std::string region(std::uint32_t rows) {
  return kSave + ("\033[1;" + std::to_string(rows - 1)) + "r" + kRestore;
}

std::string all_scroll() {
  return std::string(kSave) + "\033[r" + kRestore;
}

std::string at_foot(std::uint32_t rows, const std::string& text) {
  return kSave + ("\033[" + std::to_string(rows)) + ";1H" + text + "\033[K" + kRestore;
}

}  // namespace

LiveLine::LiveLine() : next_(Clock::now() + std::chrono::seconds(1)) {}

LiveLine::~LiveLine() {
  if (rows_ != 0) print_error(all_scroll() + at_foot(rows_, ""));
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
  if (rows_ != 0 && rows != rows_) out = all_scroll();  // the terminal was resized
  // Down and up again: if the cursor was in the last row, the text above it scrolls, and the cursor
  // ends up above our line, in the column where the program left it.
  if (rows != rows_) out += kDown + region(rows) + kUp;
  rows_ = rows;
  const Terminal& on = error_output();
  print_error(out + at_foot(rows, paint(text.substr(0, columns - 1), Tone::dim, on)));
}

}  // namespace lowtide::cli
