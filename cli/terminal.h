// terminal.h - the command's appearance: text that is safe to show, colours, tables, progress.
//
// Output on a terminal is for people; anywhere else it is for programs. So colours, line widths
// and progress exist only on a terminal. Unless the locale is UTF-8, all output is ASCII.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide::cli {

struct Terminal {
  bool is_terminal = false;
  bool colour = false;      // a terminal, and neither NO_COLOR nor TERM=dumb
  bool progress = false;    // a terminal whose lines can be rewritten: not TERM=dumb
  bool unicode = false;     // LC_ALL, LC_CTYPE or LANG selects UTF-8
  std::size_t columns = 0;  // 0: not a terminal, lines are never cut
};

// Determined on the first call.
[[nodiscard]] const Terminal& output();        // stdout
[[nodiscard]] const Terminal& error_output();  // stderr

enum class Tone { plain, bold, dim, good, warning, bad };
[[nodiscard]] std::string paint(std::string_view text, Tone tone, const Terminal& on = output());

// visible_text of lowtide/terminal.h for this terminal: pure ASCII unless it supports Unicode.
[[nodiscard]] std::string shown(std::string_view text, const Terminal& on = output());

// How many columns it takes: escape sequences take none, wide characters two.
[[nodiscard]] std::size_t width_of(std::string_view text);
// Cut to at most `columns`; the start is what is cut ("…/shard_07.bin").
[[nodiscard]] std::string cut_start(std::string_view text, std::size_t columns,
                                    const Terminal& on = output());
// Broken at spaces to `columns` (0: not at all); further lines are indented by `indent` spaces.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent);

// "a, b or c".
[[nodiscard]] std::string either(const std::vector<std::string>& words);
// "12.3 %"; "100 %" only if part == whole; "-" if whole is 0.
[[nodiscard]] std::string percent_text(std::uint64_t part, std::uint64_t whole);
[[nodiscard]] std::string bytes_text(const std::optional<std::uint64_t>& bytes);  // or "unknown"
[[nodiscard]] std::string rate_text(std::uint64_t bytes, double seconds);         // "1.2 GiB/s"

void print(std::string_view text);        // to stdout
void print_error(std::string_view text);  // to stderr
// Flushes stdout; false if a write failed (a full disk), with the reason in `why`.
[[nodiscard]] bool flush_output(std::string* why);

// Columns are as wide as their contents. If they do not fit the terminal, the column named flexible
// is cut; if that is not enough, each row becomes lines of "heading  value".
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string heading;
    Align align = Align::left;
  };
  explicit Table(std::vector<Column> columns, std::size_t flexible_column = 0);

  void add_row(std::vector<std::string> cells);  // one cell per column, safe to show
  [[nodiscard]] std::string text(const Terminal& on = output()) const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths() const;
  [[nodiscard]] std::string as_lines(const Terminal& on) const;

  std::vector<Column> columns_;
  std::size_t flexible_;
  std::vector<std::vector<std::string>> rows_;
};

// "name   value" lines with aligned values, wrapped to the terminal.
class Fields {
 public:
  void add(std::string name, std::string value);
  [[nodiscard]] std::string text(std::size_t indent = 2, const Terminal& on = output()) const;

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

// A progress bar on stderr, if that is a terminal and not a dumb one. It appears after one second
// and disappears on destruction.
class Progress {
 public:
  explicit Progress(std::string title);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::uint64_t done_bytes, std::uint64_t all_bytes);
  // The same for a few long steps: `what` is the current one. Shown at once.
  void show_step(std::string_view what, std::uint64_t done, std::uint64_t all);

 private:
  void draw(double share, const std::string& words);

  using Clock = std::chrono::steady_clock;
  std::string title_;
  Clock::time_point start_;
  Clock::time_point last_;
  bool drawn_ = false;
};

}  // namespace lowtide::cli
