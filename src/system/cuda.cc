#include <dlfcn.h>

#include <initializer_list>

#include "core/accelerator.h"
#include "os/sys.h"

namespace lowtide {
namespace {

// Of cuda_runtime_api.h, which is not needed to build this.
constexpr unsigned kHostRegisterPortable = 1;
constexpr unsigned kEventBlockingSync = 1;  // a thread that waits does not spin
constexpr unsigned kEventDisableTiming = 2;
constexpr int kStreamCaptureModeRelaxed = 2;
void* const kDefaultStream = nullptr;

// Each returns 0 or the number of an error.
struct CudaCalls {
  int (*host_register)(void* at, std::size_t size_bytes, unsigned flags) = nullptr;
  int (*host_unregister)(void* at) = nullptr;
  int (*event_create)(void** event, unsigned flags) = nullptr;
  int (*event_record)(void* event, void* stream) = nullptr;
  int (*event_query)(void* event) = nullptr;
  int (*event_synchronize)(void* event) = nullptr;
  int (*event_destroy)(void* event) = nullptr;
  int (*device_synchronize)() = nullptr;
  int (*get_device)(int* device) = nullptr;
  int (*set_device)(int device) = nullptr;
  int (*exchange_capture_mode)(int* mode) = nullptr;
  int (*get_last_error)() = nullptr;
  const char* (*error_string)(int error) = nullptr;
};

template <typename Function>
bool find_call(void* library, const char* name, Function* into) {
  *into = reinterpret_cast<Function>(sys::table.dlsym(library, name));
  return *into != nullptr;
}

bool find_calls(void* library, CudaCalls* into) {
  return find_call(library, "cudaHostRegister", &into->host_register) &&
         find_call(library, "cudaHostUnregister", &into->host_unregister) &&
         find_call(library, "cudaEventCreateWithFlags", &into->event_create) &&
         find_call(library, "cudaEventRecord", &into->event_record) &&
         find_call(library, "cudaEventQuery", &into->event_query) &&
         find_call(library, "cudaEventSynchronize", &into->event_synchronize) &&
         find_call(library, "cudaEventDestroy", &into->event_destroy) &&
         find_call(library, "cudaDeviceSynchronize", &into->device_synchronize) &&
         find_call(library, "cudaGetDevice", &into->get_device) &&
         find_call(library, "cudaSetDevice", &into->set_device) &&
         find_call(library, "cudaThreadExchangeStreamCaptureMode", &into->exchange_capture_mode) &&
         find_call(library, "cudaGetLastError", &into->get_last_error) &&
         find_call(library, "cudaGetErrorString", &into->error_string);
}

class CudaDevice final : public Accelerator {
 public:
  CudaDevice(const CudaCalls& calls, int device, bool fenced)
      : cuda_(calls), device_(device), fenced_(fenced) {}

  bool pin(std::span<std::byte> memory) noexcept override {
    const Here here(*this, /*stay=*/true);
    return done(cuda_.host_register(memory.data(), memory.size(), kHostRegisterPortable));
  }
  void unpin(std::span<std::byte> memory) noexcept override {
    const Here here(*this);
    (void)done(cuda_.host_unregister(memory.data()));
  }
  Fence fence() noexcept override {
    if (!fenced_) return nullptr;
    const Here here(*this);
    void* event = nullptr;
    if (done(cuda_.event_create(&event, kEventBlockingSync | kEventDisableTiming))) {
      if (done(cuda_.event_record(event, kDefaultStream))) return event;
      (void)done(cuda_.event_destroy(event));
    }
    (void)done(cuda_.device_synchronize());
    return nullptr;
  }
  // A device that reports an error copies nothing any more, so that counts as passed.
  bool passed(Fence fence) noexcept override {
    const Here here(*this);
    constexpr int kNotReady = 600;
    const int error = cuda_.event_query(fence);
    (void)done(error);
    return error != kNotReady;
  }
  void wait(Fence fence) noexcept override {
    const Here here(*this);
    (void)done(cuda_.event_synchronize(fence));
  }
  void release(Fence fence) noexcept override {
    const Here here(*this);
    (void)done(cuda_.event_destroy(fence));
  }

 private:
  // Makes the device the current one of this thread, and allows calls that are forbidden while
  // another thread captures a CUDA graph: ours are no part of it.
  class Here {
   public:
    // `stay`: for the thread that reads ahead. To restore device 0 there would initialise it.
    explicit Here(const CudaDevice& of, bool stay = false) : of_(of) {
      (void)of_.done(of_.cuda_.exchange_capture_mode(&mode_));
      int current = of_.device_;
      (void)of_.done(of_.cuda_.get_device(&current));
      if (current == of_.device_) return;
      (void)of_.done(of_.cuda_.set_device(of_.device_));
      if (!stay) before_ = current;
    }
    ~Here() {
      if (before_ >= 0) (void)of_.done(of_.cuda_.set_device(before_));
      (void)of_.done(of_.cuda_.exchange_capture_mode(&mode_));
    }
    Here(const Here&) = delete;
    Here& operator=(const Here&) = delete;

   private:
    const CudaDevice& of_;
    int mode_ = kStreamCaptureModeRelaxed;
    int before_ = -1;
  };

  // CUDA reports an error of ours again to the next caller on this thread who asks, so it is taken
  // back here.
  [[nodiscard]] bool done(int error) const {
    if (error != 0) (void)cuda_.get_last_error();
    return error == 0;
  }

  const CudaCalls cuda_;
  const int device_;
  const bool fenced_;
};

}  // namespace

std::shared_ptr<Accelerator> find_cuda(bool fenced, std::string* reason) {
  *reason = "CUDA's runtime library (libcudart.so.13, .12 or .11.0) is not loaded in this process";
  for (const char* const name : {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}) {
    void* const library = sys::table.dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    CudaCalls calls;
    if (library == nullptr) continue;  // else it stays open, because the device uses it
    if (!find_calls(library, &calls)) {
      *reason = std::string(name) + " lacks a required function";
      continue;
    }
    int device = 0;
    if (const int error = calls.get_device(&device); error != 0) {
      (void)calls.get_last_error();
      *reason = std::string("CUDA finds no device: ") + calls.error_string(error);
      continue;
    }
    reason->clear();
    return std::make_shared<CudaDevice>(calls, device, fenced);
  }
  return nullptr;
}

}  // namespace lowtide
