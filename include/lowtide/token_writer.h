// token_writer.h - writes token files document by document, in flat memory.
//
//   auto writer = lowtide::TokenWriter::create("o.bin", {.format = "megatron", .dtype = "uint16"});
//   for (const std::vector<std::int64_t>& document : documents) writer.append(document);
//   writer.close();  // only now do the files appear under their names
//
// The files are written under temporary names beside the final ones. close() makes them durable and
// renames them; an index is renamed last. Until then, and if the writer is destroyed without
// close(), an old file stays as it was.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lowtide/dtype.h"
#include "lowtide/error.h"

namespace lowtide {

struct TokenWriterOptions {
  // A word of token_writer_formats(); there is no default.
  std::string format;
  // The type of the tokens in the file: NumPy's descr or name, such as "uint16". If the format
  // cannot store it, create() throws std::invalid_argument, which lists the types that it can
  // store.
  std::string dtype;
  // Continues an existing file of the same format and dtype; if there is none, starts a new one.
  // The old tokens are copied into the new file, so that the old file stays whole until close().
  bool append = false;
  // The most that the writer holds, in bytes, however many documents there are. 0: 256 MiB, or an
  // eighth of the memory that this process may use if that is less.
  std::uint64_t memory_bytes = 0;
};

// The ids of one document in the caller's memory, as integers of any type.
using TokenList = std::variant<std::span<const std::uint8_t>, std::span<const std::int8_t>,
                               std::span<const std::uint16_t>, std::span<const std::int16_t>,
                               std::span<const std::uint32_t>, std::span<const std::int32_t>,
                               std::span<const std::uint64_t>, std::span<const std::int64_t>>;

// The formats that can be written.
[[nodiscard]] std::vector<std::string_view> token_writer_formats();

// Copies share one writer. Any number of threads may call all members at the same time. In the
// child of a fork every member that writes throws std::invalid_argument: the files belong to the
// parent.
class TokenWriter {
 public:
  class Impl;

  // Creates the temporary files. Throws IoError (no such folder, no permission, another writer of
  // this path), std::invalid_argument for a wrong option or too little memory, and FormatError for
  // an existing file that cannot be continued because it has another format or dtype, or several
  // sequences per document.
  [[nodiscard]] static TokenWriter create(const std::string& path,
                                          const TokenWriterOptions& options);

  // Writes one document, which may be empty. Documents stay whole, in the order in which the calls
  // got the writer's lock. No token is added between them. The call blocks while the disk is
  // behind.
  //
  // Throws std::invalid_argument, and writes nothing of this document, for an id that does not fit
  // the type (the message names document and id), for more tokens than the format can count, and
  // after close(). Throws IoError if the disk fails; the writer is then broken: every later call
  // throws the same error, and nothing is published.
  void append(TokenList tokens);
  template <typename Tokens>
    requires std::is_constructible_v<std::span<const typename Tokens::value_type>, const Tokens&>
  void append(const Tokens& tokens) {
    append(TokenList(std::span<const typename Tokens::value_type>(tokens)));
  }

  // How much the file will hold so far, including an old file that is continued. If the format does
  // not record documents, those of the old file are not counted.
  [[nodiscard]] std::uint64_t tokens() const;
  [[nodiscard]] std::uint64_t documents() const;

  // The final names: the data file, then its index if there is one.
  [[nodiscard]] std::vector<std::string> paths() const;
  [[nodiscard]] const std::string& format() const;
  [[nodiscard]] DType dtype() const;
  // The budget in force, and how much of it is held, by name.
  [[nodiscard]] std::uint64_t memory_bytes() const;
  [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> memory_claims() const;

  // Publishes the files; a second call does nothing. If it throws IoError, nothing was published.
  void close();
  // Removes what was written; an old file stays. Does nothing after close().
  void abandon() noexcept;
  // Whether close() or abandon() has been called.
  [[nodiscard]] bool closed() const;

 private:
  explicit TokenWriter(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace lowtide
