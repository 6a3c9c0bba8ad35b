// run_file.h - what a scatter task made of its part of the source: segments, in each of them the
// units sorted by bucket.
//
// The segments are one after the other from byte 0 on. A chunk is what a segment has of one bucket.
// At the end there is an index: for each bucket, and one after the last, where its chunk begins in
// each segment. So the chunks of one bucket are found with one small read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/extent.h"
#include "os/files.h"
#include "writer/published_file.h"
#include "writer/sequential_output.h"

namespace lowtide {

// Which run files belong together: those of one plan.
struct RunKind {
  std::uint64_t plan = 0;  // its hash
  std::uint64_t buckets = 0;
};

// One thread at a time. Without publish() nothing is left of it.
class RunWriter {
 public:
  // Borrows the buffer; see SequentialOutput. Throws as PublishedFile.
  RunWriter(const std::string& path, RunKind kind, std::span<std::byte> buffer,
            std::uint64_t dirty_chunk_bytes);

  // Units of bucket 0, then begin_chunk, those of bucket 1 and so on, begin_chunk after each.
  void begin_segment();
  void begin_chunk() { begins_.push_back(output_.offset_bytes()); }
  void append(std::span<const std::byte> bytes) { output_.append(bytes); }
  void publish();

  [[nodiscard]] static std::uint64_t index_bytes(std::uint64_t segments, std::uint64_t buckets) {
    return segments * (buckets + 1) * sizeof(std::uint64_t);
  }

 private:
  const RunKind kind_;
  PublishedFile file_;
  SequentialOutput output_;
  std::vector<std::uint64_t> begins_;  // buckets + 1 per segment
  std::uint64_t segments_ = 0;
};

// The run files of a plan, in the order of the source. They are opened when they are read. Any
// thread.
class Runs {
 public:
  // Reads their ends. Throws IoError(ENOENT) with a hint for a missing one, and FormatError for one
  // that is damaged or of another plan.
  Runs(const std::vector<std::string>& paths, RunKind kind);

  [[nodiscard]] const std::shared_ptr<Files>& files() const { return files_; }
  [[nodiscard]] std::uint64_t segments() const { return segments_; }
  // Adds the chunks of a bucket, without empty ones, in the order of the source. Extent::shard is
  // the number of the run.
  void chunks(std::uint64_t bucket, std::vector<Extent>* out) const;
  // The bytes of all chunks of buckets [first, end).
  [[nodiscard]] std::uint64_t bytes(std::uint64_t first, std::uint64_t end) const;

 private:
  struct Run {
    std::uint64_t segments = 0;
    std::uint64_t index_offset_bytes = 0;
  };
  void read_begins(std::size_t number, std::uint64_t bucket, std::uint64_t buckets,
                   std::vector<std::uint64_t>* out) const;

  std::vector<Run> runs_;
  std::shared_ptr<Files> files_;  // with a bounded number of descriptors
  std::uint64_t segments_ = 0;
};

}  // namespace lowtide
