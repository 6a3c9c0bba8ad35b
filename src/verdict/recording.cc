#include "meter/recording.h"

#include "verdict/summary.h"
#include "verdict/verdict.h"

namespace lowtide {

Level Recording::start() const {
  return start_of(impl_->trace);
}
Peak Recording::peak() const {
  return peak_of(impl_->trace);
}
Level Recording::end() const {
  return end_of(impl_->trace);
}
Growth Recording::growth() const {
  return growth_of(impl_->trace);
}
FileCache Recording::page_cache_of(const std::string& path) const {
  return file_cache_of(impl_->trace, path);
}
Verdict Recording::verdict() const {
  return judge(impl_->trace);
}

}  // namespace lowtide
