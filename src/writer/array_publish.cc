// The part of ArrayFile that publishes what was written, or drops it.
#include <stdexcept>
#include <string>

#include "core/clock.h"
#include "writer/array_file.h"

namespace lowtide {

ArrayFile::Alone::Alone(ArrayFile& array) : array_(array), start_ns_(now_ns()) {
  const MutexLock lock(array.mutex_);
  while (array.alone_) array.changed_.wait(array.mutex_);
  array.alone_ = true;
  while (array.writing_ > 0) array.changed_.wait(array.mutex_);
}

ArrayFile::Alone::~Alone() {
  array_.wait_ns_ += now_ns() - start_ns_;
  const MutexLock lock(array_.mutex_);
  array_.alone_ = false;
  array_.changed_.notify_all();
}

void ArrayFile::publish(std::uint64_t rows, bool last) {
  file_->check_sound();  // the same words whichever thread met the failure
  gather_->flush();
  std::string text;
  std::uint64_t end = 0;
  {
    const MutexLock lock(mutex_);
    text = header_->text(rows);
    end = header_->size_bytes() + rows * row_bytes_;
  }
  // The last block may have been written whole.
  if (last || file_->size_bytes() != end) file_->resize(end);
  if (file_->published()) file_->sync();  // the rows, before a header promises them
  {
    const MutexLock lock(mutex_);
    kept_bytes_ = end;
  }
  file_->write(0, std::as_bytes(std::span(text)));
  file_->publish();
  const MutexLock lock(mutex_);
  committed_rows_ = rows;
}

void ArrayFile::commit() {
  const Alone alone(*this);
  std::uint64_t rows = 0;
  {
    const MutexLock lock(mutex_);
    check_open();
    if (fortran_order_) {
      throw std::invalid_argument(path_ +
                                  ": order F: commit is not possible, because the rows so "
                                  "far are spread over the file; close publishes them");
    }
    if (own_part_ || !parts_.empty()) {
      throw std::invalid_argument(path_ +
                                  ": commit is not possible with parts; close publishes the array "
                                  "when all of them are closed");
    }
    if (!header_) make_header({});
    rows = next_row_;
  }
  publish(rows, /*last=*/false);
}

void ArrayFile::close() {
  {
    const Alone alone(*this);
    std::uint64_t rows = 0;
    {
      const MutexLock lock(mutex_);
      if (closed_) return;
      if (!header_) make_header({});
      rows = rows_now();
    }
    if (!own_part_) check_parts_closed();  // if they are not, they can still be
    try {
      if (own_part_) {
        close_part();
      } else {
        publish(rows, /*last=*/true);
      }
    } catch (...) {
      release();
      throw;
    }
    release();
  }
}

void ArrayFile::abandon() noexcept {
  const Alone alone(*this);
  release();
}

// Closes the file. What was not published or committed is gone.
void ArrayFile::release() noexcept {
  const MutexLock lock(mutex_);
  if (closed_) return;
  closed_ = true;
  last_stats_.bytes_written = gather_ ? gather_->bytes_written() : 0;
  last_stats_.writes = gather_ ? gather_->writes() : 0;
  gather_.reset();  // a write that still runs must not come after the resize
  try {
    if (own_part_ && file_ && read_part_state(*file_, *own_part_) == PartState::open)
      write_part_state(*file_, *own_part_, PartState::abandoned);
    if (file_ && file_->published() && file_->size_bytes() > kept_bytes_)
      file_->resize(kept_bytes_);
  } catch (...) {  // the next writer does it
  }
  file_.reset();
  claims_.clear();
}

}  // namespace lowtide
