#include "job/run_file.h"

#include <array>
#include <cerrno>

#include "core/checked.h"
#include "lowtide/error.h"
#include "token_format/token_source.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kRunMagic = 0x316E757265646974;  // "tiderun1"
constexpr std::uint64_t kEntryBytes = sizeof(std::uint64_t);

struct RunEnd {
  std::uint64_t magic, plan, buckets, segments, index_offset_bytes;
};
constexpr std::size_t kEndBytes = 5 * kEntryBytes;

std::array<std::byte, kEndBytes> stored_end(const RunEnd& end) {
  std::array<std::byte, kEndBytes> bytes;
  std::byte* at = bytes.data();
  for (const std::uint64_t value :
       {end.magic, end.plan, end.buckets, end.segments, end.index_offset_bytes}) {
    store_little(value, at);
    at += kEntryBytes;
  }
  return bytes;
}

RunEnd loaded_end(const std::array<std::byte, kEndBytes>& bytes) {
  const auto value = [&](std::size_t i) {
    return load_little<std::uint64_t>(&bytes[i * kEntryBytes]);
  };
  return {value(0), value(1), value(2), value(3), value(4)};
}

[[noreturn]] void refuse_run(const std::string& path, const std::string& why) {
  throw FormatError(path + ": " + why + "; remove the folder of this job and run it again");
}

std::unique_ptr<File> open_run(const std::string& path) {
  try {
    return std::make_unique<File>(path);
  } catch (const IoError& error) {
    if (error.err != ENOENT) throw;
    throw IoError(ENOENT, "open", path, std::nullopt,
                  "a task of the stage before has not made it yet; run that stage first");
  }
}

}  // namespace

RunWriter::RunWriter(const std::string& path, RunKind kind, std::span<std::byte> buffer,
                     std::uint64_t dirty_chunk_bytes)
    : kind_(kind),
      file_(path, PublishedFile::Start::anew, dirty_chunk_bytes),
      output_(file_, buffer) {}

void RunWriter::begin_segment() {
  ++segments_;
  begins_.reserve(begins_.size() + kind_.buckets + 1);
  begin_chunk();
}

void RunWriter::publish() {
  const std::uint64_t index_offset_bytes = output_.offset_bytes();
  std::array<std::byte, kEntryBytes> entry;
  for (std::uint64_t bucket = 0; bucket <= kind_.buckets; ++bucket) {
    for (std::uint64_t segment = 0; segment < segments_; ++segment) {
      store_little(begins_[segment * (kind_.buckets + 1) + bucket], entry.data());
      output_.append(entry);
    }
  }
  output_.append(stored_end({kRunMagic, kind_.plan, kind_.buckets, segments_, index_offset_bytes}));
  output_.flush();
  file_.publish();
}

Runs::Runs(const std::vector<std::string>& paths, RunKind kind) {
  std::vector<Shard> shards;
  for (const std::string& path : paths) {
    const std::unique_ptr<File> file = open_run(path);
    const std::uint64_t size_bytes = file->shard().size_bytes;
    if (size_bytes < kEndBytes) refuse_run(path, "it ends early");
    std::array<std::byte, kEndBytes> bytes;
    file->read_exact(size_bytes - kEndBytes, bytes);
    const RunEnd end = loaded_end(bytes);
    if (end.magic != kRunMagic) refuse_run(path, "it is damaged");
    if (end.plan != kind.plan || end.buckets != kind.buckets)
      refuse_run(path, "it belongs to another plan");
    std::uint64_t index = 0;
    if (!checked_mul(end.segments, (kind.buckets + 1) * kEntryBytes, &index) ||
        end.index_offset_bytes > size_bytes ||
        size_bytes - end.index_offset_bytes != saturating_add(index, kEndBytes)) {
      refuse_run(path, "its index is damaged");
    }
    runs_.push_back({end.segments, end.index_offset_bytes});
    shards.push_back(file->shard());
    segments_ += end.segments;
  }
  files_ = std::make_shared<Files>(std::move(shards));
}

// Where the chunks of `buckets` buckets begin, those of one bucket after those of another.
void Runs::read_begins(std::size_t number, std::uint64_t bucket, std::uint64_t buckets,
                       std::vector<std::uint64_t>* out) const {
  const Run& run = runs_[number];
  const std::shared_ptr<File> file = files_->open(static_cast<std::uint32_t>(number));
  out->resize(run.segments * buckets);
  file->read_exact(run.index_offset_bytes + bucket * run.segments * kEntryBytes,
                   std::as_writable_bytes(std::span(*out)));
  for (std::uint64_t& begin : *out) {
    begin = load_little<std::uint64_t>(reinterpret_cast<const std::byte*>(&begin));
    if (begin > run.index_offset_bytes) refuse_run(file->shard().path, "its index is damaged");
  }
}

void Runs::chunks(std::uint64_t bucket, std::vector<Extent>* out) const {
  std::vector<std::uint64_t> begins;
  for (std::size_t number = 0; number < runs_.size(); ++number) {
    const Run& run = runs_[number];
    read_begins(number, bucket, 2, &begins);
    for (std::uint64_t segment = 0; segment < run.segments; ++segment) {
      const std::uint64_t begin = begins[segment];
      const std::uint64_t end = begins[run.segments + segment];
      if (end < begin || end - begin > UINT32_MAX)
        refuse_run(files_->shards()->path(number), "its index is damaged");
      if (begin == end) continue;
      out->push_back({.offset_bytes = begin,
                      .size_bytes = static_cast<std::uint32_t>(end - begin),
                      .shard = static_cast<std::uint32_t>(number)});
    }
  }
}

std::uint64_t Runs::bytes(std::uint64_t first, std::uint64_t end) const {
  std::uint64_t sum = 0;
  std::vector<std::uint64_t> begins;
  for (std::size_t number = 0; number < runs_.size(); ++number) {
    read_begins(number, first, 1, &begins);
    for (const std::uint64_t begin : begins) sum -= begin;  // modulo 2^64
    read_begins(number, end, 1, &begins);
    for (const std::uint64_t begin : begins) sum += begin;
  }
  return sum;
}

}  // namespace lowtide
