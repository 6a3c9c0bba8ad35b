#include "writer/part_ticket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <stdexcept>

#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr std::string_view kTicketStart = "lowtide-part-1";
constexpr std::string_view kMarkStart = "lowtide parts ";
constexpr std::size_t kMostAxes = 64;
// Equally long, so that one replaces another.
constexpr std::array<std::string_view, 4> kStateWords = {"unopened ", "open     ", "closed   ",
                                                         "abandoned"};

std::string mark_text(std::uint64_t mark) {
  std::string digits = std::to_string(mark);
  return std::string(kMarkStart) + std::string(20 - digits.size(), '0') + digits + "\n";
}

std::string record_text(const PartTicket& ticket, PartState state) {
  return mark_text(ticket.mark) + std::string(kStateWords[static_cast<std::size_t>(state)]) + "\n";
}

[[noreturn]] void throw_no_ticket() {
  throw std::invalid_argument(
      "this is not the text of a part that this version of Lowtide made; make the parts again");
}

// Takes fields that a space ends from the front of a text.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}

  std::string_view word() {
    const std::size_t end = rest_.find(' ');
    if (end == std::string_view::npos) throw_no_ticket();
    return take(end);
  }
  std::uint64_t number() {
    const std::string_view digits = word();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) throw_no_ticket();
    return value;
  }
  std::string_view sized() {
    const std::uint64_t size = number();
    if (size >= rest_.size() || rest_[size] != ' ') throw_no_ticket();
    return take(size);
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size + 1);
    return taken;
  }
  std::string_view rest_;
};

std::string read_text(PublishedFile& file, std::uint64_t offset_bytes, std::size_t size) {
  std::string text(size, '\0');
  file.read_exact(offset_bytes, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

std::string PartTicket::text() const {
  std::string all(kTicketStart);
  const auto add = [&all](std::uint64_t number) { all += " " + std::to_string(number); };
  for (const std::uint64_t number : {mark, first_row, end_row, record_bytes, memory_bytes,
                                     std::uint64_t{locks}, std::uint64_t{shape.size()}}) {
    add(number);
  }
  for (const std::uint64_t extent : shape) add(extent);
  add(descr.size());
  return all + " " + descr + " " + path;
}

PartTicket PartTicket::parse(std::string_view text) {
  Fields fields(text);
  if (fields.word() != kTicketStart) throw_no_ticket();
  PartTicket found;
  found.mark = fields.number();
  found.first_row = fields.number();
  found.end_row = fields.number();
  found.record_bytes = fields.number();
  found.memory_bytes = fields.number();
  found.locks = fields.number() != 0;
  const std::uint64_t axes = fields.number();
  if (axes == 0 || axes > kMostAxes) throw_no_ticket();
  for (std::uint64_t i = 0; i < axes; ++i) found.shape.push_back(fields.number());
  found.descr = fields.sized();
  found.path = fields.rest();
  if (found.path.empty() || found.first_row >= found.end_row || found.end_row > found.shape[0])
    throw_no_ticket();
  return found;
}

void mark_parts(PublishedFile& file, std::uint64_t mark) {
  const std::string text = mark_text(mark);
  file.write(0, std::as_bytes(std::span(text)));
}

void check_mark(PublishedFile& file, const PartTicket& ticket) {
  const std::string expected = mark_text(ticket.mark);
  if (file.size_bytes() >= ticket.record_bytes + kPartRecordBytes &&
      read_text(file, 0, expected.size()) == expected) {
    return;
  }
  throw IoError(ESTALE, "open", ticket.path, std::nullopt,
                "the writer that made this part is gone; another one writes this file now");
}

void write_part_state(PublishedFile& file, const PartTicket& ticket, PartState state) {
  const std::string text = record_text(ticket, state);
  file.write(ticket.record_bytes, std::as_bytes(std::span(text)));
}

PartState read_part_state(PublishedFile& file, const PartTicket& ticket) {
  for (const PartState state : {PartState::open, PartState::closed, PartState::abandoned}) {
    const std::string text = record_text(ticket, state);
    if (read_text(file, ticket.record_bytes, text.size()) == text) return state;
  }
  return PartState::unopened;
}

}  // namespace lowtide
