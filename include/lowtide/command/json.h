// json.h - writes JSON on one line, from numbers and from texts of any bytes.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide {

// Writes values in the order of the calls and adds commas and colons. A call that would not make
// valid JSON (a value without a key in an object, an end without a begin) throws std::logic_error.
// Texts are escaped, including invisible characters that JSON would allow, such as U+009B and
// U+202E. Bytes that are not UTF-8 become U+FFFD. One thread at a time.
//
//   JsonWriter json;
//   json.begin_object().field("path", path).key("sizes").begin_array().value(3).end_array();
//   json.end_object();
//   std::string text = json.text();
class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);

  JsonWriter& null();
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(double number);  // NaN and infinities become null, because JSON lacks them
  template <std::same_as<bool> Bool>
  JsonWriter& value(Bool yes) {
    return raw(yes ? "true" : "false");
  }
  template <std::signed_integral Integer>
  JsonWriter& value(Integer number) {
    return raw(std::to_string(number));
  }
  template <std::unsigned_integral Integer>
    requires(!std::same_as<Integer, bool>)
  JsonWriter& value(Integer number) {
    return raw(std::to_string(number));
  }
  template <typename T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }
  template <typename T>
  JsonWriter& value(const std::vector<T>& items) {
    begin_array();
    for (const T& item : items) value(item);
    return end_array();
  }

  template <typename T>
  JsonWriter& field(std::string_view name, const T& item) {
    key(name);
    return value(item);
  }

  // The text so far. Throws std::logic_error while an object or array is open.
  [[nodiscard]] const std::string& text() const;

 private:
  JsonWriter& raw(std::string_view text);
  JsonWriter& open(char bracket, bool object);
  JsonWriter& close(char bracket, bool object);
  void before_value();
  void quote(std::string_view text);

  struct Level {
    bool object = false;
    bool empty = true;
  };
  std::string out_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

}  // namespace lowtide
