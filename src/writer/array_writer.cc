#include <stdexcept>
#include <utility>

#include "http/local_path.h"
#include "lowtide/writer.h"
#include "os/per_process.h"
#include "writer/array_file.h"

namespace lowtide {

class ArrayWriter::Impl {
 public:
  Impl(const std::string& of, std::unique_ptr<ArrayFile> file) : path(of) {
    const auto made = std::make_shared<std::unique_ptr<ArrayFile>>(std::move(file));
    here_ = std::make_unique<PerProcess<ArrayFile>>([made] { return std::move(*made); });
    (void)here_->get();
  }

  // A child has no part in it: it would write into the middle of what its parent writes.
  [[nodiscard]] ArrayFile& array() const {
    if (ArrayFile* const found = here_->find()) return *found;
    throw std::invalid_argument(path +
                                ": the writer belongs to the process that created it, and this "
                                "process was forked from it; write there, or give this process "
                                "a part() of the rows");
  }
  [[nodiscard]] ArrayFile* find() const noexcept { return here_->find(); }

  const std::string path;

 private:
  std::unique_ptr<PerProcess<ArrayFile>> here_;
};

ArrayWriter::ArrayWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ArrayWriter::ArrayWriter(ArrayWriter&&) noexcept = default;
ArrayWriter& ArrayWriter::operator=(ArrayWriter&&) noexcept = default;
ArrayWriter::~ArrayWriter() = default;

ArrayWriter ArrayWriter::create(const std::string& path, const CreateOptions& options) {
  require_local(path, kWritesLocal);
  return ArrayWriter(std::make_unique<Impl>(path, std::make_unique<ArrayFile>(path, options)));
}

ArrayWriter ArrayWriter::open_part(const std::string& part, std::uint64_t memory_bytes) {
  const PartTicket ticket = PartTicket::parse(part);
  return ArrayWriter(
      std::make_unique<Impl>(ticket.path, std::make_unique<ArrayFile>(ticket, memory_bytes)));
}

const std::string& ArrayWriter::path() const {
  return impl_->path;
}
const DType& ArrayWriter::dtype() const {
  return impl_->array().dtype();
}
bool ArrayWriter::fortran_order() const {
  return impl_->array().fortran_order();
}
std::vector<std::uint64_t> ArrayWriter::shape() const {
  return impl_->array().shape();
}
std::uint64_t ArrayWriter::rows() const {
  return impl_->array().rows();
}
std::uint64_t ArrayWriter::next_row() const {
  return impl_->array().next_row();
}
std::uint64_t ArrayWriter::row_bytes() const {
  return impl_->array().row_bytes();
}
bool ArrayWriter::has_row_shape() const {
  return impl_->array().has_row_shape();
}
void ArrayWriter::set_row_shape(std::vector<std::uint64_t> row_shape) {
  impl_->array().set_row_shape(std::move(row_shape));
}
void ArrayWriter::write(std::uint64_t first, std::uint64_t count,
                        std::span<const std::byte> bytes) {
  impl_->array().write(first, count, bytes);
}
void ArrayWriter::write_rows(RowList rows, std::span<const std::byte> bytes) {
  impl_->array().write_rows(rows, bytes);
}
std::uint64_t ArrayWriter::append(std::uint64_t count, std::span<const std::byte> bytes) {
  return impl_->array().append(count, bytes);
}
std::string ArrayWriter::part(std::uint64_t first, std::uint64_t end) {
  return impl_->array().part(first, end);
}
void ArrayWriter::commit() {
  impl_->array().commit();
}
void ArrayWriter::close() {
  impl_->array().close();
}
void ArrayWriter::abandon() noexcept {
  if (ArrayFile* const array = impl_->find()) array->abandon();
}
bool ArrayWriter::closed() const {
  const ArrayFile* const array = impl_->find();
  return array == nullptr || array->closed();
}
WriteStats ArrayWriter::stats() const {
  return impl_->array().stats();
}

}  // namespace lowtide
