#include "lowtide/bytes.h"

#include <array>
#include <charconv>
#include <optional>
#include <stdexcept>

#include "core/checked.h"

namespace lowtide {
namespace {

struct Unit {
  std::string_view name;  // lower case
  std::uint64_t bytes;
};

constexpr std::array<Unit, 10> kUnits{{{"", 1},
                                       {"b", 1},
                                       {"kib", 1ULL << 10},
                                       {"mib", 1ULL << 20},
                                       {"gib", 1ULL << 30},
                                       {"tib", 1ULL << 40},
                                       {"kb", 1000ULL},
                                       {"mb", 1000'000ULL},
                                       {"gb", 1000'000'000ULL},
                                       {"tb", 1000'000'000'000ULL}}};

// Written by hand because those of the C library depend on the locale.
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::uint64_t digit(char c) {
  return static_cast<std::uint64_t>(c - '0');
}

std::string_view take_digits(std::string_view* text) {
  std::size_t count = 0;
  while (count < text->size() && is_digit((*text)[count])) ++count;
  const std::string_view digits = text->substr(0, count);
  text->remove_prefix(count);
  return digits;
}

std::optional<std::uint64_t> unit_bytes(std::string_view name) {
  std::string lower;
  for (const char c : name.substr(0, 4)) lower += to_lower(c);
  for (const Unit& unit : kUnits) {
    if (unit.name == lower) return unit.bytes;
  }
  return std::nullopt;
}

constexpr std::size_t kShown = 40;

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  std::string shown(text.substr(0, kShown));
  if (text.size() > kShown) shown += "...";
  throw std::invalid_argument("\"" + shown + "\" is not a size in bytes: " + why +
                              "; write e.g. \"64KiB\", \"1.5GiB\", \"500MB\" or \"4096\"");
}

// "M" means 2^20 to some tools and 10^6 to others, so the caller must decide. "512Mi" only lacks
// its last letter.
[[noreturn]] void refuse_unit(std::string_view text, std::string_view number,
                              std::string_view unit) {
  std::string letters;
  for (const char c : unit.substr(0, 3)) letters += to_lower(c);
  const bool binary = letters.size() == 2 && letters[1] == 'i';
  const std::size_t known =
      letters.empty() ? letters.npos : std::string_view("kmgt").find(letters[0]);
  const bool one_letter = known != letters.npos && (binary || letters.size() == 1);
  if (!one_letter || text.size() > kShown) refuse(text, "unknown unit");
  const std::string amount = std::string(number) + std::string_view("KMGT")[known];
  throw std::invalid_argument(std::string(text) + ": do you mean " + amount + "iB" +
                              (binary ? "?" : " or " + amount + "B?"));
}

// floor(0.<digits> * unit), exactly: each step's floor is the floor of the whole, since what is
// added before dividing by ten is an integer.
std::uint64_t fraction_bytes(std::string_view digits, std::uint64_t unit) {
  std::uint64_t part = 0;
  for (std::size_t i = digits.size(); i-- > 0;) part = (digit(digits[i]) * unit + part) / 10;
  return part;
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text, std::uint64_t least_bytes) {
  std::string_view rest = text;
  const std::string_view whole = take_digits(&rest);
  if (whole.empty()) refuse(text, "it does not start with a digit");
  std::string_view fraction;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    fraction = take_digits(&rest);
    if (fraction.empty()) refuse(text, "no digit follows the decimal point");
  }
  const std::string_view number = text.substr(0, text.size() - rest.size());
  if (rest.size() > 1 && rest.front() == ' ') rest.remove_prefix(1);
  const std::optional<std::uint64_t> unit = unit_bytes(rest);
  if (!unit) refuse_unit(text, number, rest);

  std::uint64_t bytes = 0;
  bool fits = true;
  for (const char c : whole) {
    fits = fits && checked_mul(bytes, 10, &bytes) && checked_add(bytes, digit(c), &bytes);
  }
  fits = fits && checked_mul(bytes, *unit, &bytes) &&
         checked_add(bytes, fraction_bytes(fraction, *unit), &bytes);
  if (!fits) refuse(text, "it needs more than 64 bits");
  if (bytes < least_bytes) refuse(text, "it must be at least " + format_bytes(least_bytes));
  return bytes;
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kNames{" B", " KiB", " MiB", " GiB", " TiB"};
  std::size_t power = 0;
  while (power + 1 < kNames.size() && (bytes >> (10 * (power + 1))) != 0) ++power;

  const std::uint64_t unit = 1ULL << (10 * power);
  const std::uint64_t remainder = bytes % unit;
  if (remainder == 0) return std::to_string(bytes / unit) + std::string(kNames[power]);

  const std::uint64_t whole = bytes / unit;
  int decimals = whole >= 100 ? 0 : whole >= 10 ? 1 : 2;
  std::uint64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  // Rounds to nearest with integers; remainder < 2^40 and scale <= 100, so nothing wraps.
  std::uint64_t scaled = whole * scale + (remainder * scale + unit / 2) / unit;
  if (power + 1 < kNames.size() && scaled == 1024 * scale) {
    return "1.00" + std::string(kNames[power + 1]);
  }
  // An exact value drops its zeros; a rounded one keeps them, so that it looks rounded.
  const bool exact = (remainder * scale) % unit == 0;
  while (exact && decimals > 0 && scaled % 10 == 0) {
    scaled /= 10;
    scale /= 10;
    --decimals;
  }
  std::string text = std::to_string(scaled / scale);
  if (decimals > 0) {
    const std::string digits = std::to_string(scaled % scale);
    text += "." + std::string(static_cast<std::size_t>(decimals) - digits.size(), '0') + digits;
  }
  return text + std::string(kNames[power]);
}

// Not printf, because its decimal point depends on the locale.
std::string format_fixed(double value, int decimals) {
  std::array<char, 400> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                 std::chars_format::fixed, decimals);
  return {digits.data(), end.ptr};
}

}  // namespace lowtide
