#include "writer/token_writer.h"

#include <algorithm>
#include <stdexcept>

#include "core/checked.h"
#include "core/quote.h"
#include "format/descr.h"
#include "http/local_path.h"
#include "lowtide/bytes.h"
#include "lowtide/options.h"
#include "os/paths.h"
#include "writer/published_pair.h"
#include "writer/store_tokens.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kLeastBytes = 16 * 1024;  // of a buffer, and of a chunk of dirty pages
constexpr std::uint64_t kMostBufferBytes = 4 << 20;
constexpr std::uint64_t kMostChunkBytes = 16 << 20;
constexpr std::uint64_t kChunks = 3;  // that a PublishedFile may have on their way

// A part of the budget, in whole blocks.
std::uint64_t part_of(std::uint64_t memory_bytes, std::uint64_t divisor, std::uint64_t most_bytes) {
  return round_down(std::clamp(memory_bytes / divisor, kLeastBytes, most_bytes),
                    WriteFile::kBlockBytes);
}

}  // namespace

TokenWriter::Impl::Part::Part(const std::string& path, std::uint64_t buffer_bytes,
                              std::uint64_t chunk_bytes)
    : file(path, PublishedFile::Start::anew, chunk_bytes),
      buffer(buffer_bytes, /*prefault=*/false, "write buffers"),
      output(file, buffer.bytes()) {}

TokenWriter::Impl::Impl(const std::string& path, const TokenWriterOptions& options)
    : target(token_target(whole_path(path), options.format, parse_descr(options.dtype))),
      memory_bytes(options.memory_bytes != 0 ? options.memory_bytes : default_memory_bytes()) {
  if (!target.stray_index_path.empty() && path_exists(target.stray_index_path)) {
    throw std::invalid_argument(path + ": a reader would take " + target.stray_index_path +
                                " for the index of this file, but format " + target.format +
                                " has no index; remove that file, or choose another name");
  }
  // Called once: only find() is used after this.
  live_ = std::make_unique<PerProcess<Live>>([&] { return open(options.append); });
  (void)live_->get();
}

std::unique_ptr<TokenWriter::Impl::Live> TokenWriter::Impl::open(bool append) {
  auto live = std::make_unique<Live>(memory_bytes);
  Live& mine = *live;
  const MutexLock lock(mine.mutex);
  const std::uint64_t buffer_bytes = part_of(memory_bytes, 8, kMostBufferBytes);
  const std::uint64_t chunk_bytes = part_of(memory_bytes, 16, kMostChunkBytes);
  std::vector<Budget::Entry> entries{{.what = "the write buffer", .bytes = buffer_bytes},
                                     {.what = "dirty pages", .bytes = kChunks * chunk_bytes}};
  if (target.output->index != nullptr) {
    entries.push_back({.what = "the write buffer of the index", .bytes = buffer_bytes});
    entries.push_back({.what = "dirty pages of the index", .bytes = kChunks * chunk_bytes});
  }
  mine.claims = mine.budget.claim_all(entries);
  if (target.output->index != nullptr) recover_pair(target.data_path, target.index_path);
  mine.data = std::make_unique<Part>(target.data_path, buffer_bytes, chunk_bytes);
  mine.data->output.append_zeros(target.output->header_bytes);
  if (target.output->index != nullptr) {
    mine.index = std::make_unique<Part>(target.index_path, buffer_bytes, chunk_bytes);
    mine.index->output.append_zeros(target.output->index->header_bytes);
  }
  // After the files are locked: nobody else publishes from now on.
  const std::optional<OldTokens> old = append ? OldTokens::find(target) : std::nullopt;
  if (old) copy_old(mine, *old);
  return live;
}

void TokenWriter::Impl::copy_old(Live& mine, const OldTokens& old) {
  SequentialOutput& data = mine.data->output;
  const std::uint64_t size_bytes = old.tokens() * token_bytes(target.type);
  for (std::uint64_t done_bytes = 0; done_bytes < size_bytes;) {
    const std::span<std::byte> room = data.room();
    const std::uint64_t now = std::min<std::uint64_t>(room.size(), size_bytes - done_bytes);
    old.read(done_bytes, room.first(now));
    data.filled(now);
    done_bytes += now;
  }
  SequentialOutput* const index = mine.index ? &mine.index->output : nullptr;
  old.for_documents([&](std::uint64_t count) { add_document(index, count); });
  tokens = old.tokens();
}

// Counts a document whose tokens are written, and adds it to the index.
void TokenWriter::Impl::add_document(SequentialOutput* index, std::uint64_t count) {
  if (index != nullptr) {
    const IndexColumn& column = target.output->index->columns.front();
    std::byte entry[64];
    column.store({.number = documents,
                  .first_token = tokens,
                  .tokens = count,
                  .item_bytes = token_bytes(target.type)},
                 entry);
    index->append(std::span(entry).first(column.entry_bytes));
  }
  tokens += count;
  ++documents;
}

TokenWriter::Impl::Live& TokenWriter::Impl::live() const {
  if (Live* const live = live_->find()) return *live;
  throw std::invalid_argument(target.data_path +
                              ": the writer belongs to the process that created it, and this one "
                              "was forked from it; create one here, with a path of its own");
}

void TokenWriter::Impl::check_usable(Live& live) const {
  if (live.failure) std::rethrow_exception(live.failure);
  if (closed) throw std::invalid_argument(target.data_path + ": this writer is closed");
}

void TokenWriter::Impl::check_count(std::uint64_t count, std::uint64_t begun) const {
  const TokenOutput& output = *target.output;
  const auto document = [this] { return "document " + std::to_string(documents) + ": "; };
  if (count > output.most_document_tokens - begun) {
    throw std::invalid_argument(document() + "a document of a " + target.format +
                                " file can have at most " +
                                std::to_string(output.most_document_tokens) + " tokens, not " +
                                std::to_string(begun + count) + "; split it");
  }
  if (count > output.most_tokens - tokens - begun) {
    throw std::invalid_argument(document() + "a " + target.format + " file can have at most " +
                                std::to_string(output.most_tokens) + " tokens; it has " +
                                std::to_string(tokens + begun) + ", and the call adds " +
                                std::to_string(count) + "; start another file");
  }
}

void TokenWriter::Impl::append(TokenType type, const std::byte* from, std::uint64_t count,
                               bool more) {
  Live& mine = live();
  // Without the lock: threads can check their documents while another one writes.
  const std::optional<std::size_t> unfit = first_unfit(type, from, count, target.type);
  const MutexLock lock(mine.mutex);
  check_usable(mine);
  if (unfit) {
    throw std::invalid_argument(unfit_text(documents, mine.begun + *unfit, type,
                                           from + *unfit * token_bytes(type), target.type));
  }
  check_count(count, mine.begun);
  try {
    store(mine, type, from, count);
    mine.begun += count;
    if (!more) {
      add_document(mine.index ? &mine.index->output : nullptr, std::exchange(mine.begun, 0));
    }
  } catch (...) {
    mine.failure = std::current_exception();
    throw;
  }
}

void TokenWriter::Impl::store(Live& mine, TokenType type, const std::byte* from,
                              std::uint64_t count) {
  const std::uint64_t item_bytes = token_bytes(target.type);
  SequentialOutput& data = mine.data->output;
  for (std::uint64_t left = count; left > 0;) {
    // Headers and buffers have whole numbers of tokens, so the room is never smaller than one.
    const std::span<std::byte> room = data.room();
    const std::uint64_t now = std::min<std::uint64_t>(left, room.size() / item_bytes);
    store_tokens(type, from, now, target.type, room.data());
    data.filled(now * item_bytes);
    from += now * token_bytes(type);
    left -= now;
  }
}

void TokenWriter::Impl::sign(std::uint64_t job) {
  Live& mine = live();
  const MutexLock lock(mine.mutex);
  check_usable(mine);
  mine.data->file.sign(job);
  if (mine.index) mine.index->file.sign(job);
}

void TokenWriter::Impl::finish(Live& mine) {
  const TokenTotals totals = target.totals(tokens, documents);
  Part& data = *mine.data;
  data.output.flush();
  // From here on the buffer of the data is free for everything else.
  const std::span<std::byte> room = data.buffer.bytes();
  const auto write_header = [&](PublishedFile& file, const auto& from) {
    if (from.header_bytes == 0) return;
    from.store_header(totals, room.first(from.header_bytes));
    file.write(0, room.first(from.header_bytes));
  };
  write_header(data.file, *target.output);
  if (!mine.index) return data.file.publish();
  Part& index = *mine.index;
  const IndexOutput& output = *target.output->index;
  index.output.flush();
  make_columns(
      output, totals, room,
      [&](std::uint64_t offset_bytes, std::span<std::byte> out) {
        index.file.read_exact(output.header_bytes + offset_bytes, out);
      },
      [&](std::span<const std::byte> bytes) { index.output.append(bytes); });
  index.output.flush();
  write_header(index.file, output);
  publish_pair(data.file, index.file);
}

// The files that were not published are removed.
void TokenWriter::Impl::end(Live& mine) {
  mine.index.reset();
  mine.data.reset();
  mine.claims.clear();
}

void TokenWriter::Impl::close() {
  Live& mine = live();
  const MutexLock lock(mine.mutex);
  if (mine.failure) std::rethrow_exception(mine.failure);
  if (closed) return;
  closed = true;
  try {
    finish(mine);
  } catch (...) {
    mine.failure = std::current_exception();
    end(mine);
    throw;
  }
  end(mine);
}

void TokenWriter::Impl::abandon() noexcept {
  Live* const mine = live_->find();
  if (mine == nullptr) return;
  const MutexLock lock(mine->mutex);
  closed = true;
  mine->failure = nullptr;
  end(*mine);
}

std::vector<std::pair<std::string, std::uint64_t>> TokenWriter::Impl::claims() const {
  std::vector<std::pair<std::string, std::uint64_t>> held;
  for (const Budget::Entry& entry : live().budget.claims())
    held.emplace_back(entry.what, entry.bytes);
  return held;
}

std::vector<std::string_view> token_writer_formats() {
  return writable_token_words();
}

TokenWriter::TokenWriter(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

TokenWriter TokenWriter::create(const std::string& path, const TokenWriterOptions& options) {
  require_local(path, kWritesLocal);
  return TokenWriter(std::make_shared<Impl>(path, options));
}

void TokenWriter::append(TokenList list) {
  // The alternatives of a TokenList are in the order of TokenType.
  static_assert(std::variant_size_v<TokenList> == kTokenTypes);
  const auto type = static_cast<TokenType>(list.index());
  std::visit([&](const auto& ids) { impl_->append(type, std::as_bytes(ids).data(), ids.size()); },
             list);
}

std::uint64_t TokenWriter::tokens() const {
  return impl_->tokens;
}
std::uint64_t TokenWriter::documents() const {
  return impl_->documents;
}
std::vector<std::string> TokenWriter::paths() const {
  std::vector<std::string> paths{impl_->target.data_path};
  if (!impl_->target.index_path.empty()) paths.push_back(impl_->target.index_path);
  return paths;
}
const std::string& TokenWriter::format() const {
  return impl_->target.format;
}
DType TokenWriter::dtype() const {
  return impl_->target.totals(0, 0).dtype;
}
std::uint64_t TokenWriter::memory_bytes() const {
  return impl_->memory_bytes;
}
std::vector<std::pair<std::string, std::uint64_t>> TokenWriter::memory_claims() const {
  return impl_->claims();
}
void TokenWriter::close() {
  impl_->close();
}
void TokenWriter::abandon() noexcept {
  impl_->abandon();
}
bool TokenWriter::closed() const {
  return impl_->closed;
}

}  // namespace lowtide
