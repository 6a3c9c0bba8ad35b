// part_ticket.h - what another process must know to write some rows of an array, as text; and the
// record in the array's hidden file by which it reports how far it is.
//
// The hidden file begins with a mark while parts exist, so that nobody writes into the file of
// another writer. The records are behind the data, one block each: publishing cuts them off.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "writer/published_file.h"

namespace lowtide {

struct PartTicket {
  std::uint64_t mark = 0;  // of the writer
  std::uint64_t first_row = 0;
  std::uint64_t end_row = 0;
  std::uint64_t record_bytes = 0;  // where its record is
  std::uint64_t memory_bytes = 0;  // of the writer
  bool locks = false;              // whether one byte of the file can be locked
  std::string descr;
  std::vector<std::uint64_t> shape;  // of the whole array
  std::string path;                  // absolute, behind links

  [[nodiscard]] std::string text() const;
  // Throws std::invalid_argument for a text that this version did not make.
  [[nodiscard]] static PartTicket parse(std::string_view text);
};

// A process that wants the part writes `open`, and one of the others when it is done.
enum class PartState { unopened, open, closed, abandoned };

constexpr std::uint64_t kPartRecordBytes = WriteFile::kBlockBytes;

// Marks the file of a writer that will give parts. Throws IoError.
void mark_parts(PublishedFile& file, std::uint64_t mark);
// Throws IoError unless this is the file that the ticket means.
void check_mark(PublishedFile& file, const PartTicket& ticket);

void write_part_state(PublishedFile& file, const PartTicket& ticket, PartState state);
// The file must reach up to the end of the record. Throws IoError.
[[nodiscard]] PartState read_part_state(PublishedFile& file, const PartTicket& ticket);

}  // namespace lowtide
