#include "token_format/token_output.h"

#include <stdexcept>

#include "core/quote.h"
#include "lowtide/error.h"
#include "token_format/token_names.h"

namespace lowtide {
namespace {

const TokenFormat& writable_format(std::string_view word) {
  std::string words;
  for (const TokenFormat* const format : token_formats()) {
    if (format->output == nullptr) continue;
    if (word == format->word || (!word.empty() && word == format->alias)) return *format;
    words += std::string(words.empty() ? "" : ", ") + std::string(format->word);
  }
  const bool is_read = std::ranges::any_of(
      token_formats(), [&](const TokenFormat* format) { return word == format->word; });
  throw std::invalid_argument("format: expected one that can be written (" + words + "), found " +
                              excerpt(word) + (is_read ? ", which is only read" : ""));
}

TokenType checked_type(const TokenFormat& format, const DType& dtype) {
  const std::optional<TokenType> type = token_type(dtype);
  const std::span<const TokenType> types = format.output->types;
  if (type && std::ranges::find(types, *type) != types.end()) return *type;
  std::string names;
  for (const TokenType known : types) {
    names += std::string(names.empty() ? "" : ", ") + std::string(token_type_name(known));
  }
  throw std::invalid_argument("dtype: expected one that " + std::string(format.word) +
                              " files store (" + names + "), found " + dtype.descr());
}

void check_name(const TokenFormat& format, const std::string& path) {
  if (!format.output->needs_suffix && format.output->index == nullptr) return;
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  if (name.size() > format.suffix.size() && name.ends_with(format.suffix)) return;
  throw std::invalid_argument("path: expected a name that ends in " + std::string(format.suffix) +
                              ", as " + std::string(format.word) + " files are named, found " +
                              excerpt(path));
}

std::uint64_t entries_of(const IndexColumn& column, std::uint64_t documents) {
  return documents + (column.has_end ? 1 : 0);
}

// The documents in turn, by reading the first column in slices.
class DocumentWalk {
 public:
  DocumentWalk(const IndexOutput& index, const TokenTotals& totals, std::span<std::byte> room,
               const ReadStart& read)
      : index_(index), totals_(totals), room_(room), read_(read) {
    place_.item_bytes = totals.dtype.itemsize_bytes;
  }

  // The next document; after the last one, the empty one behind it.
  const DocumentPlace& next() {
    place_.first_token += place_.tokens;
    place_.tokens = 0;
    place_.number = walked_;
    if (walked_ == totals_.documents) return place_;
    const std::uint64_t entry_bytes = index_.columns[0].entry_bytes;
    const std::uint64_t most = room_.size() / entry_bytes;
    const std::uint64_t at = walked_ % most;
    if (at == 0) {
      const std::uint64_t count = std::min(most, totals_.documents - walked_);
      read_(walked_ * entry_bytes, room_.first(count * entry_bytes));
    }
    place_.tokens = index_.load_tokens(&room_[at * entry_bytes], place_.first_token);
    ++walked_;
    return place_;
  }

 private:
  const IndexOutput& index_;
  const TokenTotals& totals_;
  const std::span<std::byte> room_;
  const ReadStart& read_;
  DocumentPlace place_;
  std::uint64_t walked_ = 0;
};

}  // namespace

TokenTotals TokenTarget::totals(std::uint64_t tokens, std::uint64_t documents) const {
  return {.dtype = DType::parse(token_type_name(type)), .tokens = tokens, .documents = documents};
}

TokenTarget token_target(const std::string& path, std::string_view format, const DType& dtype) {
  const TokenFormat& known = writable_format(format);
  TokenTarget target;
  target.format = known.word;
  target.type = checked_type(known, dtype);
  check_name(known, path);
  target.output = known.output;
  target.data_path = path;
  const std::string index = index_beside(path).value_or("");
  (known.output->index != nullptr ? target.index_path : target.stray_index_path) = index;
  return target;
}

std::vector<std::string_view> writable_token_words() {
  std::vector<std::string_view> words;
  for (const TokenFormat* const format : token_formats()) {
    if (format->output != nullptr) words.push_back(format->word);
  }
  return words;
}

std::uint64_t index_bytes(const IndexOutput& index, std::uint64_t documents) {
  std::uint64_t bytes = index.header_bytes;
  for (const IndexColumn& column : index.columns) {
    bytes += entries_of(column, documents) * column.entry_bytes;
  }
  return bytes;
}

void make_columns(const IndexOutput& index, const TokenTotals& totals, std::span<std::byte> room,
                  const ReadStart& read,
                  const std::function<void(std::span<const std::byte>)>& write) {
  const std::span<std::byte> in = room.first(room.size() / 2);
  const std::span<std::byte> out = room.subspan(room.size() / 2);
  for (const IndexColumn& column : index.columns.subspan(1)) {
    DocumentWalk walk(index, totals, in, read);
    const std::uint64_t entries = entries_of(column, totals.documents);
    const std::uint64_t most = out.size() / column.entry_bytes;
    std::uint64_t tokens = 0;
    for (std::uint64_t done = 0; done < entries;) {
      const std::uint64_t count = std::min(most, entries - done);
      for (std::uint64_t i = 0; i < count; ++i) {
        const DocumentPlace& document = walk.next();
        tokens += document.tokens;
        column.store(document, &out[i * column.entry_bytes]);
      }
      write(out.first(count * column.entry_bytes));
      done += count;
    }
    if (tokens == totals.tokens) continue;
    throw FormatError("the index that is being written: expected " + std::to_string(totals.tokens) +
                      " tokens in all documents, found " + std::to_string(tokens) +
                      "; is another program writing to it?");
  }
}

}  // namespace lowtide
