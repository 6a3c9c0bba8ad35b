#include "meter/trace.h"

#include <charconv>
#include <concepts>
#include <utility>

#include "meter/trace_fields.h"

namespace lowtide {
namespace {

// One record: words separated by one space, ASCII only, so that it stays one line whatever a file
// is called, and every name is read back byte for byte.
class Record {
 public:
  explicit Record(std::string_view word) : line_(word) {}

  void word(std::string_view text) {
    line_ += ' ';
    line_ += text;
  }

  template <typename Number>
    requires std::integral<Number> || std::floating_point<Number>
  void number(Number value) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
    word({digits, static_cast<std::size_t>(end - digits)});
  }

  void text(std::string_view bytes) {
    line_ += ' ';
    quote(bytes);
  }

  // A reason is spelled out once per line; after that, its index in the line stands for it.
  void figure(const Figure& figure) {
    if (figure.value) return number(*figure.value);
    const std::string reason = figure.why.substr(0, kMostReasonBytes);
    for (std::size_t i = 0; i < reasons_.size(); ++i) {
      if (reasons_[i] == reason) return word("?" + std::to_string(i));
    }
    reasons_.push_back(reason);
    word("?");
    quote(reason);
  }

  [[nodiscard]] std::string end() && {
    line_ += '\n';
    return std::move(line_);
  }

 private:
  void quote(std::string_view bytes) {
    constexpr std::string_view kHex = "0123456789abcdef";
    line_ += '"';
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        line_ += '\\';
        line_ += c;
      } else if (byte < 0x20 || byte >= 0x7f) {
        line_ += "\\x";
        line_ += kHex[byte >> 4];
        line_ += kHex[byte & 15];
      } else {
        line_ += c;
      }
    }
    line_ += '"';
  }

  std::string line_;
  std::vector<std::string> reasons_;
};

void add_process(Record& record, const ProcessReading& process) {
  record.word(process.rss_alone ? "P" : "p");
  record.number(process.pid);
  record.number(process.parent);
  record.number(process.start_ticks);
  record.text(process.name);
  visit_process(process, [&](const Figure& figure) { record.figure(figure); });
  if (process.rss_alone) record.number(*process.rss_alone);
}

void add_file(Record& record, const FileReading& file) {
  record.word(file.deleted ? "d" : "f");
  record.text(file.path);
  record.number(file.device);
  record.number(file.inode);
  visit_file(file, [&](const Figure& figure) { record.figure(figure); });
}

void add_group(Record& record, const GroupReading& group) {
  record.word("g");
  record.text(group.path);
  record.number(group.version);
  visit_group(group, [&](const Figure& figure) { record.figure(figure); });
}

}  // namespace

std::string header_line(const Trace& trace) {
  Record record(kTraceMagic);
  record.number(kTraceFormat);
  record.number(trace.root_pid);
  record.number(trace.started_unix_ms);
  record.text(trace.machine);
  for (const std::string& argument : trace.command) record.text(argument);
  return std::move(record).end();
}

std::string reading_line(const Reading& reading) {
  Record record("r");
  record.number(reading.seconds);
  for (const ProcessReading& process : reading.processes) add_process(record, process);
  if (reading.files) {
    record.word("F");
    for (const FileReading& file : *reading.files) add_file(record, file);
  }
  if (reading.group) add_group(record, *reading.group);
  return std::move(record).end();
}

std::string mark_line(const Mark& mark) {
  Record record("m");
  record.number(mark.seconds);
  record.text(mark.text);
  return std::move(record).end();
}

std::string ending_line(const Ending& ending) {
  Record record("e");
  record.number(ending.seconds);
  if (ending.exit_code) {
    record.number(*ending.exit_code);
  } else {
    record.word("-");
  }
  record.number(ending.cost_cpu_seconds);
  return std::move(record).end();
}

std::string trace_text(const Trace& trace) {
  std::string text = header_line(trace);
  auto mark = trace.marks.begin();
  for (const Reading& reading : trace.readings) {
    for (; mark != trace.marks.end() && mark->seconds <= reading.seconds; ++mark) {
      text += mark_line(*mark);
    }
    text += reading_line(reading);
  }
  for (; mark != trace.marks.end(); ++mark) text += mark_line(*mark);
  if (trace.ending) text += ending_line(*trace.ending);
  return text;
}

}  // namespace lowtide
