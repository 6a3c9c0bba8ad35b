// The part of ArrayFile that shares the rows of an array among processes.
#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/checked.h"
#include "format/descr.h"
#include "lowtide/error.h"
#include "os/shared_memory.h"
#include "writer/array_file.h"

namespace lowtide {
namespace {

constexpr std::size_t kMostNamed = 3;  // parts in a message

std::string rows_text(const PartTicket& part) {
  return "rows " + std::to_string(part.first_row) + ":" + std::to_string(part.end_row);
}

// nullptr: none of them has any of these rows.
const PartTicket* overlapping(std::span<const PartTicket> parts, std::uint64_t first,
                              std::uint64_t end) {
  const auto next = std::ranges::upper_bound(parts, first, {}, &PartTicket::first_row);
  if (next != parts.end() && next->first_row < end) return &*next;
  if (next != parts.begin() && std::prev(next)->end_row > first) return &*std::prev(next);
  return nullptr;
}

}  // namespace

ArrayFile::ArrayFile(const PartTicket& ticket, std::uint64_t memory_bytes)
    : path_(ticket.path),
      budget_(memory_bytes != 0 ? memory_bytes : ticket.memory_bytes),
      dtype_(parse_descr(ticket.descr)),
      fortran_order_(false),
      places_(place_count()),
      own_part_(ticket) {
  claim_memory();
  open_file(PublishedFile::Start::join);
  check_mark(*file_, ticket);
  if (ticket.locks && file_->lock_byte(ticket.record_bytes) == FileLock::held_by_another) {
    throw IoError(EBUSY, "open", path_, std::nullopt,
                  rows_text(ticket) + ": another process has this part open");
  }
  write_part_state(*file_, ticket, PartState::open);
  const MutexLock lock(mutex_);
  rows_ = ticket.shape[0];
  next_row_ = ticket.first_row;  // append() begins there
  make_header({ticket.shape.begin() + 1, ticket.shape.end()});
  const std::uint64_t start = header_->size_bytes();
  gather_->own_range(start + ticket.first_row * row_bytes_, start + ticket.end_row * row_bytes_);
}

std::string ArrayFile::part(std::uint64_t first, std::uint64_t end) {
  const Alone alone(*this);
  PartTicket ticket;
  {
    const MutexLock lock(mutex_);
    check_open();
    check_part(first, end);
    ticket = {
        .mark = parts_.empty() ? random_number() : parts_.front().mark,
        .first_row = first,
        .end_row = end,
        .record_bytes = round_up(header_->size_bytes() + *rows_ * row_bytes_, kPartRecordBytes) +
                        parts_.size() * kPartRecordBytes,
        .memory_bytes = budget_.limit_bytes(),
        .descr = dtype_.descr(),
        .shape = header_->layout().shape,
        .path = PublishedFile::target_path(path_)};
  }
  gather_->flush();          // what was written there before must not come after
  gather_->own_range(0, 0);  // what is between its rows is for others from now on
  file_->resize(ticket.record_bytes + kPartRecordBytes);
  mark_parts(*file_, ticket.mark);
  // On a network file system the lock on the whole file may include every byte.
  ticket.locks = file_->lock_byte(ticket.record_bytes) == FileLock::taken;
  if (ticket.locks) file_->unlock_byte(ticket.record_bytes);
  const MutexLock lock(mutex_);
  parts_.insert(std::ranges::upper_bound(parts_, first, {}, &PartTicket::first_row), ticket);
  next_row_ = std::max(next_row_, end);
  return ticket.text();
}

void ArrayFile::check_part(std::uint64_t first, std::uint64_t end) const {
  const auto refuse = [this](const std::string& why) {
    throw std::invalid_argument(path_ + ": part: " + why);
  };
  if (own_part_)
    refuse("this writer is a part itself; make parts with the writer of the whole array");
  if (fortran_order_) refuse("order F: a row is spread over the whole file");
  if (!rows_ || !header_) refuse("the shape of the array must be known");
  if (file_->published())
    refuse(
        "rows have been committed, so the file is already published; make parts before the first "
        "commit");
  if (first >= end || end > *rows_) {
    throw std::out_of_range("rows " + std::to_string(first) + ":" + std::to_string(end) +
                            " are not a range within an array of " + std::to_string(*rows_) +
                            " rows");
  }
  if (const PartTicket* const other = overlapping(parts_, first, end))
    refuse(rows_text(*other) + " already belong to another part");
}

void ArrayFile::check_own(std::span<const PartTicket> parts, std::uint64_t first,
                          std::uint64_t end) const {
  if (first >= end) return;
  if (own_part_ && (first < own_part_->first_row || end > own_part_->end_row)) {
    const std::uint64_t wrong = first < own_part_->first_row ? first : end - 1;
    throw std::out_of_range("row " + std::to_string(wrong) + " is outside this part, which has " +
                            rows_text(*own_part_));
  }
  if (const PartTicket* const other = overlapping(parts, first, end)) {
    throw std::invalid_argument(path_ + ": " + rows_text(*other) +
                                " belong to a part; write them through it");
  }
}

void ArrayFile::check_parts_closed() {
  std::vector<PartTicket> parts;
  {
    const MutexLock lock(mutex_);
    parts = parts_;
  }
  std::size_t wrong = 0;
  std::string text;
  for (const PartTicket& part : parts) {
    bool held = false;
    if (part.locks) {
      held = file_->lock_byte(part.record_bytes) == FileLock::held_by_another;
      if (!held) file_->unlock_byte(part.record_bytes);
    }
    const PartState state = read_part_state(*file_, part);
    if (state == PartState::closed && !held) continue;
    if (++wrong > kMostNamed) continue;
    text += (text.empty() ? "" : "; ") + rows_text(part);
    if (held) {
      text += ": still open";
    } else if (state == PartState::unopened) {
      text += ": never opened";
    } else if (state == PartState::abandoned) {
      text += ": abandoned after an error";
    } else {
      text += part.locks ? ": its process ended without close" : ": not closed";
    }
  }
  if (wrong == 0) return;
  if (wrong > kMostNamed) text += "; and " + std::to_string(wrong - kMostNamed) + " more";
  throw std::invalid_argument(path_ + ": " + std::to_string(wrong) + " of " +
                              std::to_string(parts.size()) + " parts are not closed (" + text +
                              "); write them again and close, or abandon the array");
}

void ArrayFile::close_part() {
  gather_->flush();
  file_->sync();
  write_part_state(*file_, *own_part_, PartState::closed);
  file_->sync();  // for a reader on another machine
}

}  // namespace lowtide
