// pread_job.h - a set of reads that several threads share, piece by piece.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/engine.h"
#include "engine/piece_reader.h"
#include "span/gap.h"
#include "span/plan.h"

namespace lowtide {

// What one thread takes at a time.
struct PreadPiece {
  static constexpr std::size_t kMostReads = PieceReader::kMostReads;  // what one ring call can take
  static constexpr std::size_t kMostSpans = 16;
  static constexpr std::uint64_t kEnoughBytes = 1024 * 1024;  // ends it early, so that others share

  std::array<Span, kMostSpans> spans;  // of a job with a plan
  std::size_t first = 0, last = 0;     // of the spans, else of the reads
};

// Guarded by the lane's mutex, except for the reads themselves.
struct PreadJob {
  ReadSet* set = nullptr;
  SpanPlan plan;
  bool planned = false;  // reads spans of the plan; else the reads one by one
  std::size_t next_read = 0;
  unsigned working = 0;  // pieces taken and not finished
  bool exhausted = false;
  Outcome outcome;
  Tally tally;

  // At most this many.
  [[nodiscard]] std::size_t pieces() const {
    return planned ? set->reads.size() : set->reads.size() / PreadPiece::kMostReads + 1;
  }

  // Takes the next piece. False: there are no more.
  [[nodiscard]] bool take(std::size_t most_spans, PreadPiece* piece) {
    if (set->cancelled()) outcome.cancelled = true;
    if (!outcome.ok()) return false;
    std::uint64_t bytes = 0;
    if (planned) {
      piece->first = piece->last = 0;
      while (piece->last < most_spans && bytes < PreadPiece::kEnoughBytes &&
             plan.next(&piece->spans[piece->last])) {
        bytes += piece->spans[piece->last++].size_bytes;
      }
      return piece->last > 0;
    }
    const std::size_t size = set->reads.size();
    if (next_read == size) return false;
    piece->first = next_read;
    while (next_read < size && next_read - piece->first < PreadPiece::kMostReads &&
           bytes < PreadPiece::kEnoughBytes) {
      bytes += set->reads[next_read++].from.size_bytes;
    }
    piece->last = next_read;
    return true;
  }
};

}  // namespace lowtide
