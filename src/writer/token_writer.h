// token_writer.h - behind TokenWriter: the files of a token format while they are written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/budget.h"
#include "core/mutex.h"
#include "lowtide/token_writer.h"
#include "os/memory.h"
#include "os/per_process.h"
#include "token_format/token_output.h"
#include "writer/old_tokens.h"
#include "writer/published_file.h"
#include "writer/sequential_output.h"

namespace lowtide {

class TokenWriter::Impl {
 public:
  Impl(const std::string& path, const TokenWriterOptions& options);

  // With `more`, the document goes on with the next call.
  void append(TokenType type, const std::byte* from, std::uint64_t count, bool more = false);
  // As PublishedFile::sign, for all files.
  void sign(std::uint64_t job);
  void close();
  void abandon() noexcept;

  [[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> claims() const;

  TokenTarget target;
  std::uint64_t memory_bytes = 0;
  // Changed with the lock held; read without it.
  std::atomic<std::uint64_t> tokens = 0;
  std::atomic<std::uint64_t> documents = 0;
  std::atomic<bool> closed = false;

 private:
  struct Part {  // one file
    Part(const std::string& path, std::uint64_t buffer_bytes, std::uint64_t chunk_bytes);
    PublishedFile file;
    Memory buffer;
    SequentialOutput output;
  };
  struct Live {  // what belongs to one process
    explicit Live(std::uint64_t limit_bytes) : budget(limit_bytes) {}
    Budget budget;
    Mutex mutex;
    std::vector<Claim> claims LOWTIDE_GUARDED_BY(mutex);
    std::unique_ptr<Part> data LOWTIDE_GUARDED_BY(mutex);
    std::unique_ptr<Part> index LOWTIDE_GUARDED_BY(mutex);
    std::exception_ptr failure LOWTIDE_GUARDED_BY(mutex);
    std::uint64_t begun LOWTIDE_GUARDED_BY(mutex) = 0;  // tokens of a document that goes on
  };
  [[nodiscard]] std::unique_ptr<Live> open(bool append);
  [[nodiscard]] Live& live() const;
  void check_usable(Live& live) const LOWTIDE_REQUIRES(live.mutex);
  void copy_old(Live& live, const OldTokens& old) LOWTIDE_REQUIRES(live.mutex);
  void add_document(SequentialOutput* index, std::uint64_t count);
  void check_count(std::uint64_t count, std::uint64_t begun) const;
  void store(Live& live, TokenType type, const std::byte* from, std::uint64_t count)
      LOWTIDE_REQUIRES(live.mutex);
  void finish(Live& live) LOWTIDE_REQUIRES(live.mutex);
  void end(Live& live) LOWTIDE_REQUIRES(live.mutex);

  std::unique_ptr<PerProcess<Live>> live_;
};

}  // namespace lowtide
