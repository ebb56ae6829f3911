// A call of aclnnLogSigmoidBackward on memory of its own, and the fault that a bad one leaves.
#pragma once

#include "aclnnop/aclnn_logsigmoid_backward.h"
#include "checks.h"

// out = sigmoid(-0) * gradOutput on n elements, all in their own memory.
struct Work {
  explicit Work(int64_t n)
      : n(n),
        memory{floats(std::vector<float>(n, 2)), floats(std::vector<float>(n, 0)), floats(std::vector<float>(n, 7))} {
    for (void* m : memory) tensors.push_back(row(m, n));
  }
  int first() {
    return aclnnLogSigmoidBackwardGetWorkspaceSize(tensors[0], tensors[1], tensors[1], tensors[2], &workspace,
                                                   &executor);
  }
  int second(aclrtStream stream = nullptr) { return aclnnLogSigmoidBackward(nullptr, 0, executor, stream); }
  void launch(aclrtStream stream = nullptr) {
    OK(first());
    OK(second(stream));
  }
  void run(aclrtStream stream = nullptr) {
    launch(stream);
    OK(aclrtSynchronizeStream(stream));
  }
  void replace(size_t i, aclTensor* tensor) {
    OK(aclDestroyTensor(tensors[i]));
    tensors[i] = tensor;
  }
  void end() {
    for (aclTensor* t : tensors) OK(aclDestroyTensor(t));
    for (void* m : memory) OK(aclrtFree(m));
  }

  int64_t n;
  std::vector<void*> memory;
  std::vector<aclTensor*> tensors;
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
};

inline void require_healthy() {
  Work healthy(3);
  healthy.run();
  REQUIRE(host(healthy.memory[2], 3)[2] == 1);
}

// The kernel's fault: found when the stream is synchronised, shown by copies too, gone after a reset.
inline void require_fault(const char* words) {
  REQUIRE(aclrtSynchronizeStream(nullptr) == 507015);
  REQUIRE(message_has(words));
  aclrtStreamStatus status;
  REQUIRE(aclrtStreamQuery(nullptr, &status) == 507015);
  OK(aclrtResetDeviceForce(0));
  OK(aclrtSetDevice(0));
  require_healthy();
}
