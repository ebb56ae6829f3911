// What the four call examples share: a device, a stream, tensors from host data, both phases, the printed result.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

inline void expect(int status, const char* what) {
  if (status == ACL_SUCCESS) return;
  const char* message = aclGetRecentErrMsg();
  printf("%s failed with %d: %s\n", what, status, message == nullptr ? "" : message);
  exit(1);
}

// A contiguous tensor with its own device memory.
class DeviceTensor {
 public:
  template <class T>
  DeviceTensor(const std::vector<T>& data, const std::vector<int64_t>& shape, aclDataType type)
      : bytes_(data.size() * sizeof(T)) {
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
    expect(aclrtMalloc(&memory_, bytes_, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    expect(aclrtMemcpy(memory_, bytes_, data.data(), bytes_, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    tensor_ = aclCreateTensor(shape.data(), shape.size(), type, strides.data(), 0, ACL_FORMAT_ND, shape.data(),
                              shape.size(), memory_);
  }
  ~DeviceTensor() {
    aclDestroyTensor(tensor_);
    aclrtFree(memory_);
  }
  DeviceTensor(const DeviceTensor&) = delete;
  operator aclTensor*() const { return tensor_; }

  void print() const {
    std::vector<float> host(bytes_ / sizeof(float));
    expect(aclrtMemcpy(host.data(), bytes_, memory_, bytes_, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
    for (size_t i = 0; i < host.size(); i++) printf("result[%zu] is: %f\n", i, host[i]);
  }

 private:
  size_t bytes_;
  void* memory_ = nullptr;
  aclTensor* tensor_ = nullptr;
};

class Device {
 public:
  Device() {
    expect(aclInit(nullptr), "aclInit");
    expect(aclrtSetDevice(0), "aclrtSetDevice");
    expect(aclrtCreateStream(&stream), "aclrtCreateStream");
  }
  ~Device() {
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    aclFinalize();
  }
  Device(const Device&) = delete;

  // Runs a second phase with the workspace that the first asked for, and waits for the stream.
  template <class SecondPhase>
  void run(SecondPhase phase, uint64_t workspaceSize, aclOpExecutor* executor) {
    void* workspace = nullptr;
    if (workspaceSize > 0) expect(aclrtMalloc(&workspace, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    expect(phase(workspace, workspaceSize, executor, stream), "second phase");
    expect(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    if (workspace != nullptr) aclrtFree(workspace);
  }

  aclrtStream stream = nullptr;
};
