#include <utility>

#include "job/plan.h"
#include "job/source.h"
#include "lowtide/info.h"

namespace lowtide {
namespace {

class CheckPlan final : public Plan::Impl {
 public:
  explicit CheckPlan(Facts all) {
    settle(std::move(all));
    source_ = source_of(facts, "source.");
    files_ = facts.all("file");
    bytes_ = facts.all("file.bytes");
    if (files_.size() != bytes_.size())
      throw std::invalid_argument("this is not the text of a plan: files and sizes differ");
    stages = {{verb, files_.size()}};
  }

  [[nodiscard]] std::vector<std::string> inputs(std::size_t, std::size_t task) const override {
    return {files_[task]};
  }
  [[nodiscard]] std::vector<std::string> outputs(std::size_t, std::size_t) const override {
    return {};
  }
  [[nodiscard]] std::uint64_t task_bytes(std::size_t, std::size_t task) const override {
    return parse_number("file.bytes", bytes_[task]);
  }
  void run(std::size_t, std::size_t task, std::uint64_t memory, JobWatch& watch) const override {
    CheckOptions options;
    options.memory_bytes = memory;
    options.file.kind = source_.tokens ? FileKind::tokens : FileKind::array;
    if (source_.tokens) {
      options.file.dtype = source_.token_options.dtype;
      options.file.format = source_.token_options.format;
    } else {
      options.file.dtype = source_.array.dtype;
      options.file.offset_bytes = source_.array.offset_bytes;
      options.file.fortran_order = source_.array.fortran_order;
      if (files_.size() == 1) options.file.shape = source_.array.shape;
    }
    std::uint64_t before = 0;
    options.progress = [&](std::uint64_t done, std::uint64_t) {
      watch.advance(done - std::min(done, std::exchange(before, done)));
    };
    (void)check(std::span(&files_[task], 1), options);
  }

 private:
  JobSource source_;
  std::vector<std::string> files_, bytes_;
};

}  // namespace

std::shared_ptr<const Plan::Impl> check_of(Facts facts) {
  return std::make_shared<CheckPlan>(std::move(facts));
}

Plan plan_check(const JobSource& source, std::uint64_t memory_bytes) {
  const std::uint64_t memory = job_memory(memory_bytes);
  const OpenSource opened = open_source(source, std::max(memory, kLeastSourceBytes));
  Facts facts;
  facts.add("verb", "check");
  facts.add("memory", memory);
  add_source(source, "source.", &facts);
  for (const std::string& file : opened.tokens ? opened.tokens->paths() : opened.array->paths()) {
    const std::optional<PathStamp> stamp = stamp_of(file);
    facts.add("file", file);
    facts.add("file.bytes", stamp ? stamp->size_bytes : 0);
  }
  return Plan(check_of(std::move(facts)));
}

}  // namespace lowtide
