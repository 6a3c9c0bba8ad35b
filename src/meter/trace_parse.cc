#include <algorithm>
#include <charconv>
#include <concepts>
#include <utility>

#include "core/quote.h"
#include "lowtide/error.h"
#include "meter/trace.h"
#include "meter/trace_fields.h"

namespace lowtide {
namespace {

// Why a line is not valid; parse_trace adds the path and the line number.
struct BadLine {
  std::string why;
};

// The words of one line, one after the other.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  [[nodiscard]] bool done() const { return rest_.empty(); }

  std::string_view word() {
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view found = rest_.substr(0, end);
    if (found.empty()) throw BadLine{"expected a word, found " + excerpt(rest_)};
    step(end);
    return found;
  }

  template <typename Number>
    requires std::integral<Number> || std::floating_point<Number>
  Number number() {
    const std::string_view found = word();
    Number value{};
    const auto [end, err] = std::from_chars(found.data(), found.data() + found.size(), value);
    if (err != std::errc{} || end != found.data() + found.size()) {
      throw BadLine{"expected a number, found " + excerpt(found)};
    }
    return value;
  }

  double seconds() {
    constexpr double kMostSeconds = 1e12;  // 30,000 years; the comparison also refuses NaN
    const double value = number<double>();
    if (value >= 0 && value < kMostSeconds) return value;
    throw BadLine{"expected seconds since the start, found " + std::to_string(value)};
  }

  std::string text() {
    std::string bytes;
    std::size_t at = 1;
    if (!rest_.starts_with('"')) throw BadLine{"expected a quoted string, found " + excerpt(rest_)};
    while (at < rest_.size() && rest_[at] != '"') bytes += quoted_byte(&at);
    if (at >= rest_.size()) throw BadLine{"a quoted string does not end: " + excerpt(rest_)};
    if (at + 1 < rest_.size() && rest_[at + 1] != ' ') {
      throw BadLine{"expected a space after a string, found " + excerpt(rest_.substr(at + 1))};
    }
    step(at + 1);
    return bytes;
  }

  Figure figure() {
    if (!rest_.starts_with('?')) return Figure::known(number<std::uint64_t>());
    rest_.remove_prefix(1);
    if (rest_.starts_with('"')) {
      reasons_.push_back(text());
      if (reasons_.back().size() > kMostReasonBytes) throw BadLine{"a reason is too long"};
      return Figure::unknown(reasons_.back());
    }
    const auto place = number<std::size_t>();
    if (place >= reasons_.size()) throw BadLine{"no earlier reason " + std::to_string(place)};
    return Figure::unknown(reasons_[place]);
  }

 private:
  void step(std::size_t size) {
    rest_.remove_prefix(size);
    if (rest_.empty()) return;
    rest_.remove_prefix(1);
    if (rest_.empty()) throw BadLine{"a space at the end of the line"};
  }

  char quoted_byte(std::size_t* at) {
    const char c = rest_[(*at)++];
    if (static_cast<unsigned char>(c) < 0x20) throw BadLine{"a control character in a string"};
    if (c != '\\') return c;
    const std::string_view escape = rest_.substr(*at);
    if (escape.starts_with('"') || escape.starts_with('\\')) return rest_[(*at)++];
    unsigned byte = 0;
    if (escape.size() >= 3 && escape[0] == 'x') {
      const auto [end, err] = std::from_chars(escape.data() + 1, escape.data() + 3, byte, 16);
      if (err == std::errc{} && end == escape.data() + 3) {
        *at += 3;
        return static_cast<char>(static_cast<unsigned char>(byte));
      }
    }
    throw BadLine{"expected \\\", \\\\ or \\xHH in a string, found " +
                  excerpt("\\" + std::string(escape))};
  }

  std::string_view rest_;
  std::vector<std::string> reasons_;
};

ProcessReading parse_process(Words& words, bool with_rss) {
  ProcessReading process;
  process.pid = words.number<int>();
  process.parent = words.number<int>();
  process.start_ticks = words.number<std::uint64_t>();
  process.name = words.text();
  visit_process(process, [&](Figure& figure) { figure = words.figure(); });
  if (with_rss) process.rss_alone = words.number<std::uint64_t>();
  return process;
}

FileReading parse_file(Words& words, bool deleted) {
  FileReading file;
  file.deleted = deleted;
  file.path = words.text();
  file.device = words.number<std::uint64_t>();
  file.inode = words.number<std::uint64_t>();
  visit_file(file, [&](Figure& figure) { figure = words.figure(); });
  return file;
}

GroupReading parse_group(Words& words) {
  GroupReading group;
  group.path = words.text();
  group.version = words.number<int>();
  visit_group(group, [&](Figure& figure) { figure = words.figure(); });
  return group;
}

Reading parse_reading(Words& words) {
  Reading reading;
  reading.seconds = words.seconds();
  while (!words.done()) {
    const std::string_view kind = words.word();
    if (kind == "p" || kind == "P") {
      reading.processes.push_back(parse_process(words, kind == "P"));
    } else if (kind == "F" && !reading.files) {
      reading.files.emplace();
    } else if ((kind == "f" || kind == "d") && reading.files) {
      reading.files->push_back(parse_file(words, kind == "d"));
    } else if (kind == "g" && !reading.group) {
      reading.group = parse_group(words);
    } else {
      throw BadLine{"expected p, P, F, f, d or g, found " + excerpt(kind)};
    }
  }
  return reading;
}

Ending parse_ending(Words& words) {
  Ending ending;
  ending.seconds = words.seconds();
  Words ahead = words;
  if (ahead.word() == "-") {
    words = ahead;
  } else {
    ending.exit_code = words.number<int>();
  }
  ending.cost_cpu_seconds = words.seconds();
  return ending;
}

void parse_line(std::string_view line, Trace& trace) {
  Words words(line);
  const std::string_view kind = words.word();
  if (kind == "r") {
    Reading reading = parse_reading(words);
    if (!trace.readings.empty() && reading.seconds < trace.readings.back().seconds) {
      throw BadLine{"a reading is older than the previous one"};
    }
    trace.readings.push_back(std::move(reading));
  } else if (kind == "m") {
    Mark mark{words.seconds(), words.text()};
    trace.marks.push_back(std::move(mark));
  } else if (kind == "e") {
    trace.ending = parse_ending(words);
  } else {
    throw BadLine{"expected a record r, m or e, found " + excerpt(kind)};
  }
  if (!words.done()) throw BadLine{"more words than expected"};
}

void parse_header(std::string_view line, Trace& trace) {
  Words words(line);
  words.word();
  const int format = words.number<int>();
  if (format != kTraceFormat) {
    throw BadLine{format > kTraceFormat
                      ? "written by a newer lowtide (format " + std::to_string(format) +
                            "; this version reads format " + std::to_string(kTraceFormat) + ")"
                      : "unknown format " + std::to_string(format)};
  }
  trace.root_pid = words.number<int>();
  trace.started_unix_ms = words.number<std::int64_t>();
  trace.machine = words.text();
  while (!words.done()) trace.command.push_back(words.text());
}

}  // namespace

Trace parse_trace(std::string_view text, const std::string& path) {
  const std::string magic = std::string(kTraceMagic) + " ";
  if (!text.starts_with(magic)) {
    throw FormatError(path + ": not a trace of lowtide: expected it to begin with \"" + magic +
                      "\", found " + excerpt(text.substr(0, 20)));
  }
  Trace trace;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    try {
      if (end == std::string_view::npos) throw BadLine{"the file ends within this line"};
      number == 1 ? parse_header(line, trace) : parse_line(line, trace);
    } catch (const BadLine& bad) {
      // A last record that a kill or a full disk truncated is no reason to lose the others.
      trace.cut = number > 1 && text.empty();
      if (!trace.cut) {
        throw FormatError(path + ": line " + std::to_string(number) + ": " + bad.why);
      }
    }
  }
  return trace;
}

}  // namespace lowtide
