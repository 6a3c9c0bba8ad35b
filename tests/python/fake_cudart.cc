// A library in the place of CUDA's runtime: it pins nothing, and events that were made while the
// device was held pass when it is released. What is counted is asked for with fake_count.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

namespace {

enum Count { kPins, kUnpins, kEvents, kDestroyed, kPinnedBytes, kWaits, kCounts };
std::atomic<long> counts[kCounts];
std::atomic<bool> held{false};
std::atomic<long> releases{0};

struct Event {
  bool late;
  long releases;
};
bool passed(const void* made) {
  const auto* const event = static_cast<const Event*>(made);
  return !event->late || releases > event->releases;
}

}  // namespace

extern "C" {

long fake_count(int which) {
  return counts[which];
}
void fake_hold(int hold) {
  held = hold != 0;
  if (!held) ++releases;
}

int cudaHostRegister(void*, std::size_t size_bytes, unsigned) {
  ++counts[kPins];
  counts[kPinnedBytes] += static_cast<long>(size_bytes);
  return 0;
}
int cudaHostUnregister(void*) {
  ++counts[kUnpins];
  return 0;
}
int cudaEventCreateWithFlags(void** event, unsigned) {
  ++counts[kEvents];
  *event = new Event{held, releases};
  return 0;
}
int cudaEventRecord(void*, void*) {
  return 0;
}
int cudaEventQuery(void* event) {
  return passed(event) ? 0 : 600;
}
int cudaEventSynchronize(void* event) {
  ++counts[kWaits];
  while (!passed(event)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return 0;
}
int cudaEventDestroy(void* event) {
  ++counts[kDestroyed];
  delete static_cast<Event*>(event);
  return 0;
}
int cudaDeviceSynchronize() {
  return 0;
}
int cudaGetDevice(int* device) {
  *device = 0;
  return 0;
}
int cudaSetDevice(int) {
  return 0;
}
int cudaThreadExchangeStreamCaptureMode(int*) {
  return 0;
}
int cudaGetLastError() {
  return 0;
}
const char* cudaGetErrorString(int) {
  return "an error";
}

}  // extern "C"
