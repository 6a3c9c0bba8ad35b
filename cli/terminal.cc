#include "terminal.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "lowtide/bytes.h"
#include "lowtide/command/terminal.h"

namespace lowtide::cli {
namespace {

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool locale_is_unicode() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!is_set(name)) continue;
    const std::string value = std::getenv(name);
    for (const char* const word : {"UTF-8", "utf-8", "UTF8", "utf8"}) {
      if (value.find(word) != std::string::npos) return true;
    }
    return false;
  }
  return false;
}

Terminal look_at(int descriptor) {
  Terminal found;
  found.unicode = locale_is_unicode();
  found.is_terminal = is_terminal(descriptor);
  if (!found.is_terminal) return found;
  const char* const term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  found.colour = !is_set("NO_COLOR") && !dumb;
  found.progress = !dumb;
  found.columns = terminal_columns(descriptor);
  if (found.columns == 0) found.columns = 80;
  return found;
}

}  // namespace

const Terminal& output() {
  static const Terminal found = look_at(1);
  return found;
}

const Terminal& error_output() {
  static const Terminal found = look_at(2);
  return found;
}

std::string paint(std::string_view text, Tone tone, const Terminal& on) {
  constexpr const char* kCodes[] = {"", "1", "2", "32", "33", "31"};
  const char* const code = kCodes[static_cast<int>(tone)];
  if (!on.colour || *code == '\0') return std::string(text);
  return std::string("\x1b[") + code + "m" + std::string(text) + "\x1b[0m";
}

void print(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_error(std::string_view text) {
  (void)std::fflush(stdout);
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

bool flush_output(std::string* why) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  *why = errno == 0 ? "write failed" : std::generic_category().message(errno);
  return false;
}

Table::Table(std::vector<Column> columns, std::size_t flexible_column)
    : columns_(std::move(columns)), flexible_(flexible_column) {}

void Table::add_row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = width_of(columns_[i].heading);
    for (const auto& row : rows_) width = std::max(width, width_of(row[i]));
    widths.push_back(width);
  }
  return widths;
}

std::string Table::as_lines(const Terminal& on) const {
  std::size_t names = 0;
  for (const Column& column : columns_) names = std::max(names, width_of(column.heading) + 2);
  const std::size_t width = on.columns > names ? on.columns - names : on.columns;
  std::string text;
  for (const auto& row : rows_) {
    if (!text.empty()) text += "\n";
    Fields fields;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = i == flexible_ ? cut_start(row[i], width, on) : row[i];
      if (!cell.empty()) fields.add(columns_[i].heading, cell);
    }
    text += fields.text(0, on);
  }
  return text;
}

std::string Table::text(const Terminal& on) const {
  constexpr std::size_t kGap = 2;
  constexpr std::size_t kLeastFlexible = 12;
  std::vector<std::size_t> widths = this->widths();
  std::size_t all = kGap * (widths.size() - 1);
  for (const std::size_t width : widths) all += width;
  if (on.columns != 0 && all > on.columns) {
    const std::size_t over = all - on.columns;
    if (widths[flexible_] < over + kLeastFlexible) return as_lines(on);
    widths[flexible_] -= over;
  }
  const auto line = [&](auto cell_of, Tone tone) {
    std::string out;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = cut_start(cell_of(i), widths[i], on);
      const std::string pad(widths[i] - std::min(widths[i], width_of(cell)), ' ');
      const bool right = columns_[i].align == Align::right;
      if (i != 0) out += std::string(kGap, ' ');
      out += right ? pad + paint(cell, tone, on) : paint(cell, tone, on) + pad;
    }
    while (out.ends_with(' ')) out.pop_back();
    return out + "\n";
  };
  std::string text = line([&](std::size_t i) { return columns_[i].heading; }, Tone::bold);
  for (const auto& row : rows_) text += line([&](std::size_t i) { return row[i]; }, Tone::plain);
  return text;
}

void Fields::add(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

std::string Fields::text(std::size_t indent, const Terminal& on) const {
  std::size_t name_width = 0;
  for (const auto& [name, value] : fields_) name_width = std::max(name_width, width_of(name));
  const std::size_t value_at = indent + name_width + 2;
  std::string text;
  for (const auto& [name, value] : fields_) {
    const std::string pad(name_width - width_of(name) + 2, ' ');
    const std::size_t width = on.columns > value_at ? on.columns - value_at : 0;
    text += std::string(indent, ' ') + paint(name, Tone::dim, on) + pad +
            wrapped(value, width, value_at) + "\n";
  }
  return text;
}

Progress::Progress(std::string title)
    : title_(std::move(title)), start_(Clock::now()), last_(start_) {}

Progress::~Progress() {
  if (drawn_) print_error("\r\x1b[K");
}

void Progress::show(std::uint64_t done_bytes, std::uint64_t all_bytes) {
  const Terminal& on = error_output();
  if (!on.progress || all_bytes == 0) return;
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (seconds < 1 || (drawn_ && now - last_ < std::chrono::milliseconds(100))) return;
  last_ = now;
  const double share = static_cast<double>(done_bytes) / static_cast<double>(all_bytes);
  std::string words = percent_text(done_bytes, all_bytes) + "  " + format_bytes(done_bytes) +
                      " of " + format_bytes(all_bytes) + "  " + rate_text(done_bytes, seconds);
  if (share > 0) {
    const auto left_s = static_cast<std::uint64_t>(seconds / share - seconds);
    words += "  " + std::to_string(left_s) + " s left";
  }
  draw(share, words);
}

void Progress::show_step(std::string_view what, std::uint64_t done, std::uint64_t all) {
  if (!error_output().progress || all == 0) return;
  draw(static_cast<double>(done) / static_cast<double>(all), std::string(what));
}

void Progress::draw(double share, const std::string& words) {
  const Terminal& on = error_output();
  drawn_ = true;
  const std::size_t used = width_of(title_) + words.size() + 6;
  std::string bar;
  if (on.columns > used + 8) {
    const std::size_t width = std::min<std::size_t>(on.columns - used, 40);
    const auto full = static_cast<std::size_t>(share * static_cast<double>(width));
    for (std::size_t i = 0; i < width; ++i) {
      bar += i < full ? (on.unicode ? "█" : "#") : (on.unicode ? "░" : ".");
    }
    bar += "  ";
  }
  const std::string line = title_ + "  " + bar + words;
  print_error("\r" + cut_start(line, on.columns - 1, on) + "\x1b[K");
}

}  // namespace lowtide::cli
