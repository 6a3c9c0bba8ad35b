#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/accelerator.h"
#include "os/sys.h"

namespace lowtide::cuda_test {
namespace {

// CUDA's runtime, as far as it is called: a list of calls, and the results that a test wants.
struct FakeCuda {
  std::vector<std::string> calls;
  std::string loaded = "libcudart.so.12", lacks, fails;
  int device = 0, mode = 0, error = 0, query = 0;
};
FakeCuda fake;

int call(const std::string& name) {
  fake.calls.push_back(name + " on " + std::to_string(fake.device) +
                       (fake.mode == 2 ? " relaxed" : ""));
  if (fake.fails == name) return fake.error = 2;
  return 0;
}

int host_register(void* /*at*/, std::size_t size_bytes, unsigned flags) {
  return call("register " + std::to_string(size_bytes) + " " + std::to_string(flags));
}
int host_unregister(void* /*at*/) {
  return call("unregister");
}
int event_create(void** event, unsigned flags) {
  *event = &fake;
  return call("create " + std::to_string(flags));
}
int event_record(void* event, void* stream) {
  EXPECT_EQ(event, &fake);
  EXPECT_EQ(stream, nullptr);
  return call("record");
}
int event_query(void* /*event*/) {
  (void)call("query");
  return fake.error = fake.query;
}
int event_synchronize(void* /*event*/) {
  return call("wait");
}
int event_destroy(void* /*event*/) {
  return call("destroy");
}
int device_synchronize() {
  return call("wait for all");
}
int get_device(int* device) {
  *device = fake.device;
  return fake.fails == "get" ? fake.error = 100 : 0;
}
int set_device(int device) {
  fake.device = device;
  return 0;
}
int exchange_capture_mode(int* mode) {
  std::swap(*mode, fake.mode);
  return 0;
}
int get_last_error() {
  return std::exchange(fake.error, 0);
}
const char* error_string(int /*error*/) {
  return "no CUDA-capable device is detected";
}

void* find_library(const char* name, int /*flags*/) {
  return fake.loaded == name ? &fake : nullptr;
}
template <typename Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}
void* find_symbol(void* library, const char* name) {
  EXPECT_EQ(library, &fake);
  if (fake.lacks == name) return nullptr;
  const std::pair<std::string_view, void*> all[] = {
      {"cudaHostRegister", address(host_register)},
      {"cudaHostUnregister", address(host_unregister)},
      {"cudaEventCreateWithFlags", address(event_create)},
      {"cudaEventRecord", address(event_record)},
      {"cudaEventQuery", address(event_query)},
      {"cudaEventSynchronize", address(event_synchronize)},
      {"cudaEventDestroy", address(event_destroy)},
      {"cudaDeviceSynchronize", address(device_synchronize)},
      {"cudaGetDevice", address(get_device)},
      {"cudaSetDevice", address(set_device)},
      {"cudaThreadExchangeStreamCaptureMode", address(exchange_capture_mode)},
      {"cudaGetLastError", address(get_last_error)},
      {"cudaGetErrorString", address(error_string)}};
  for (const auto& [known, function] : all) {
    if (known == name) return function;
  }
  return nullptr;
}

struct Cuda : testing::Test {
  Cuda() { fake = {}; }
  std::shared_ptr<Accelerator> find(bool fenced = true) { return find_cuda(fenced, &reason); }
  std::vector<std::string> calls() { return std::exchange(fake.calls, {}); }

  sys::Fault<decltype(sys::table.dlopen)> opens{sys::table.dlopen, &find_library};
  sys::Fault<decltype(sys::table.dlsym)> finds{sys::table.dlsym, &find_symbol};
  std::string reason;
  std::byte bytes[64] = {};
};
using Calls = std::vector<std::string>;

TEST_F(Cuda, IsFoundInWhateverVersionIsLoaded) {
  for (const char* const name : {"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"}) {
    fake.loaded = name;
    EXPECT_NE(find(), nullptr) << name;
    EXPECT_EQ(reason, "");
  }
}

TEST_F(Cuda, SaysWhyThereIsNone) {
  fake.fails = "get";
  EXPECT_EQ(find(), nullptr);
  EXPECT_EQ(reason, "CUDA finds no device: no CUDA-capable device is detected");
  EXPECT_EQ(fake.error, 0) << "the next caller must not hear of it";
  fake.lacks = "cudaEventRecord";
  EXPECT_EQ(find(), nullptr);
  EXPECT_EQ(reason, "libcudart.so.12 lacks a required function");
  fake.loaded = "";
  EXPECT_EQ(find(), nullptr);
  EXPECT_EQ(reason,
            "CUDA's runtime library (libcudart.so.13, .12 or .11.0) is not loaded in this process");
}

TEST_F(Cuda, PinsAndFencesOnItsOwnDevice) {
  fake.device = 3;
  const auto device = find();
  fake.device = 1;
  const Accelerator::Fence fence = device->fence();
  EXPECT_EQ(calls(), (Calls{"create 3 on 3 relaxed", "record on 3 relaxed"}));
  EXPECT_EQ(fake.device, 1) << "the caller's device is restored";
  EXPECT_EQ(fake.mode, 0);
  device->wait(fence);
  device->release(fence);
  EXPECT_EQ(calls(), (Calls{"wait on 3 relaxed", "destroy on 3 relaxed"}));
  device->unpin(bytes);
  EXPECT_EQ(calls(), (Calls{"unregister on 3 relaxed"}));
  EXPECT_EQ(fake.device, 1);
  EXPECT_TRUE(device->pin(bytes));
  EXPECT_EQ(calls(), (Calls{"register 64 1 on 3 relaxed"}));
  EXPECT_EQ(fake.device, 3) << "to restore the first device of a new thread would initialise it";
}

TEST_F(Cuda, TakesItsErrorsBack) {
  const auto device = find();
  const Accelerator::Fence fence = device->fence();
  fake.query = 600;  // not ready
  EXPECT_FALSE(device->passed(fence));
  EXPECT_EQ(fake.error, 0);
  fake.query = 0;
  EXPECT_TRUE(device->passed(fence));
  fake.query = 719;  // a kernel has failed: nothing is copied any more
  EXPECT_TRUE(device->passed(fence));
  EXPECT_EQ(fake.error, 0);
  fake.fails = "register 64 1";
  EXPECT_FALSE(device->pin(bytes));
  EXPECT_EQ(fake.error, 0);
}

TEST_F(Cuda, WaitsAtOnceIfItCannotMakeAFence) {
  const auto device = find();
  fake.fails = "create 3";
  EXPECT_EQ(device->fence(), nullptr);
  EXPECT_EQ(calls().back(), "wait for all on 0 relaxed");
  fake.fails = "record";
  EXPECT_EQ(device->fence(), nullptr);
  EXPECT_EQ(calls(), (Calls{"create 3 on 0 relaxed", "record on 0 relaxed", "destroy on 0 relaxed",
                            "wait for all on 0 relaxed"}));
}

TEST_F(Cuda, HasNoFencesIfTheCallerWantsNone) {
  const auto device = find(/*fenced=*/false);
  EXPECT_EQ(device->fence(), nullptr);
  EXPECT_TRUE(calls().empty());
}

}  // namespace
}  // namespace lowtide::cuda_test
