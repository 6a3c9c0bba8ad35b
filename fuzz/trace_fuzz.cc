// trace_fuzz.cc - any bytes as a trace or a JSON report: the result is a FormatError, or a Trace
// that is unchanged after being written and read back. Seeds: tests/golden/trace.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "lowtide/error.h"
#include "meter/trace.h"
#include "report/report.h"

namespace lowtide {
namespace {

// assert() is compiled out of release builds, but a broken promise must stop the fuzzer.
void require(bool promise) {
  if (!promise) std::abort();
}

bool is_time(double seconds) {
  return std::isfinite(seconds) && seconds >= 0;
}

void fuzz(std::string_view text) {
  try {
    const bool json = text.starts_with('{');  // a report contains a trace
    Trace trace = json ? parse_json(text, "f.json") : parse_trace(text, "f.trace");
    double before = 0;
    for (const Reading& reading : trace.readings) {
      require(is_time(reading.seconds) && reading.seconds >= before);
      before = reading.seconds;
    }
    for (const Mark& mark : trace.marks) require(is_time(mark.seconds));
    trace.cut = false;
    require(parse_trace(trace_text(trace), "f.trace") == trace);
  } catch (const FormatError& error) {
    require(std::strlen(error.what()) < 4096);
  }
}

}  // namespace
}  // namespace lowtide

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lowtide::fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
