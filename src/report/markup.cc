#include "report/markup.h"

#include <chrono>
#include <cmath>
#include <vector>

#include "core/quote.h"
#include "core/utf8.h"
#include "lowtide/bytes.h"

namespace lowtide {
namespace {

std::string number(double value, int decimals) {
  std::string text = format_fixed(value, decimals);
  if (decimals > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string two_digits(unsigned value) {
  return (value < 10 ? "0" : "") + std::to_string(value);
}

}  // namespace

std::string escaped(std::string_view bytes) {
  std::string out;
  for (const char c : shown(bytes)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string coordinate(double value) {
  return number(value, 1);
}

std::string svg_text(const char* look, double x, double y, const std::string& words) {
  return std::string("<text class=\"") + look + "\" x=\"" + coordinate(x) + "\" y=\"" +
         coordinate(y) + "\">" + escaped(words) + "</text>\n";
}

std::string short_text(std::string_view bytes, std::size_t most) {
  const std::string name = shown(bytes);
  std::vector<std::string_view> characters;
  for (std::string_view rest = name; !rest.empty(); rest.remove_prefix(utf8_size(rest))) {
    characters.push_back(rest.substr(0, utf8_size(rest)));
  }
  if (characters.size() <= most) return name;
  std::string out;
  const std::size_t head = most / 2, tail = most - head - 1;
  for (std::size_t i = 0; i < head; ++i) out += characters[i];
  out += "\u2026";
  for (std::size_t i = characters.size() - tail; i < characters.size(); ++i) out += characters[i];
  return out;
}

std::string short_name(std::string_view path, std::size_t most) {
  const std::size_t slash = path.find_last_of('/');
  return short_text(slash == std::string_view::npos ? path : path.substr(slash + 1), most);
}

std::string time_text(double seconds) {
  if (seconds < 60) return number(seconds, seconds < 1 ? 3 : 2) + " s";
  const double tenths = std::round(seconds * 10);
  const double minutes = std::floor(tenths / 600), rest = tenths - minutes * 600;
  const double hours = std::floor(minutes / 60);
  std::string text;
  if (hours > 0) text += number(hours, 0) + " h ";
  if (minutes > hours * 60) text += number(minutes - hours * 60, 0) + " min ";
  if (rest > 0) text += number(rest / 10, 1) + " s ";
  text.pop_back();
  return text;
}

std::string date_text(std::int64_t unix_ms) {
  using namespace std::chrono;
  const sys_time<minutes> moment{floor<minutes>(milliseconds(unix_ms))};
  const sys_days day = floor<days>(moment);
  const year_month_day date{day};
  const auto minute = static_cast<unsigned>((moment - day).count());
  return std::to_string(static_cast<int>(date.year())) + "-" +
         two_digits(static_cast<unsigned>(date.month())) + "-" +
         two_digits(static_cast<unsigned>(date.day())) + " " + two_digits(minute / 60) + ":" +
         two_digits(minute % 60) + " UTC";
}

}  // namespace lowtide
