// Device memory: bounds, use after free, alignment, devices, deferred faults.
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

CASE(the_host_cannot_touch_device_memory) {
  start();
  void* memory = floats({1});
  for (bool write : {false, true}) {
    pid_t child = fork();
    if (child == 0) {
      close(2);  // a sanitizer reports the signal that this is about
      volatile float* p = static_cast<float*>(memory);
      if (write)
        *p = 1;
      else
        static_cast<void>(*p);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    REQUIRE(!(WIFEXITED(status) && WEXITSTATUS(status) == 0));  // a signal, or a sanitizer's own exit
  }
}

CASE(fresh_memory_is_no_number) {
  start();
  void* memory = nullptr;
  OK(aclrtMalloc(&memory, 16, ACL_MEM_MALLOC_HUGE_FIRST));
  for (float v : host(memory, 4)) REQUIRE(v != v);
}

CASE(copies_stay_inside_their_memory) {
  start();
  float values[64] = {};
  void* memory = nullptr;
  OK(aclrtMalloc(&memory, 10, ACL_MEM_MALLOC_HUGE_FIRST));  // usable: (10 + 63) / 32 * 32 = 64
  REQUIRE(aclrtMemcpy(memory, 8, values, 12, ACL_MEMCPY_HOST_TO_DEVICE) == 107000);
  REQUIRE(message_has("larger than destMax 8"));
  OK(aclrtMemcpy(memory, 256, values, 64, ACL_MEMCPY_HOST_TO_DEVICE));
  REQUIRE(aclrtMemcpy(memory, 256, values, 65, ACL_MEMCPY_HOST_TO_DEVICE) == 107000);
  REQUIRE(message_has("bytes [0, 65) of block 1 on device 0, which has 10"));
  REQUIRE(aclrtMemcpy(memory, 8, values, 8, ACL_MEMCPY_DEVICE_TO_HOST) == 107000);
  REQUIRE(message_has("kind is DEVICE_TO_HOST, but src is host memory"));
  OK(aclrtMemcpy(memory, 8, values, 8, ACL_MEMCPY_DEFAULT));
  REQUIRE(aclrtMemset(memory, 256, 1, 65) == 107000);
  OK(aclrtMemset(memory, 64, 1, 64));
  OK(aclrtFree(memory));
  REQUIRE(aclrtMemcpy(values, 8, memory, 8, ACL_MEMCPY_DEVICE_TO_HOST) == 107000);
  REQUIRE(message_has("which was freed"));
  REQUIRE(aclrtFree(memory) == 107000);
  REQUIRE(aclrtFree(values) == 107000);
  REQUIRE(aclrtMalloc(&memory, 0, ACL_MEM_MALLOC_HUGE_FIRST) == 100000);
}

CASE(memory_runs_out_and_comes_back) {  // ACLNN_EMULATOR_MEMORY_MB=64
  start();
  void *large = nullptr, *more = nullptr;
  size_t free_bytes = 0, total = 0;
  for (int round = 0; round < 10; round++) {
    OK(aclrtMalloc(&large, 40 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
    REQUIRE(aclrtMalloc(&more, 40 << 20, ACL_MEM_MALLOC_HUGE_FIRST) == 207001);
    OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
    REQUIRE(total == (64u << 20) && free_bytes < (25u << 20));
    OK(aclrtFree(large));
  }
  REQUIRE(aclrtMalloc(&large, SIZE_MAX - 8, ACL_MEM_MALLOC_HUGE_FIRST) == 207001);
  REQUIRE(aclemuLiveCount("bytes") == 0);
}

CASE(a_copy_from_pinned_memory_waits_its_turn) {
  start();
  void *pinned = nullptr, *memory = floats({0});
  OK(aclrtMallocHost(&pinned, 4));
  float* value = static_cast<float*>(pinned);
  *value = 1;
  OK(aclrtLaunchHostFunc(nullptr, [](void*) { sleep_ms(50); }, nullptr));
  OK(aclrtMemcpyAsync(memory, 4, pinned, 4, ACL_MEMCPY_HOST_TO_DEVICE, nullptr));
  *value = 2;  // still in time: the copy is only queued
  OK(aclrtSynchronizeStream(nullptr));
  REQUIRE(host(memory, 1)[0] == 2);
  float pageable = 3;
  OK(aclrtLaunchHostFunc(nullptr, [](void*) { sleep_ms(50); }, nullptr));
  OK(aclrtMemcpyAsync(memory, 4, &pageable, 4, ACL_MEMCPY_HOST_TO_DEVICE, nullptr));
  REQUIRE(host(memory, 1)[0] == 3);  // pageable memory: done when the call returns
  OK(aclrtLaunchHostFunc(nullptr, [](void*) { sleep_ms(50); }, nullptr));
  OK(aclrtMemsetAsync(memory, 4, 0, 4, nullptr));
  OK(aclrtMemcpyAsync(&pageable, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST, nullptr));
  REQUIRE(pageable == 0);  // and behind everything that was queued before
  OK(aclrtFreeHost(pinned));
  REQUIRE(aclrtFreeHost(pinned) == 107000);
}

CASE(a_synchronous_copy_waits_for_no_stream) {
  start();
  Work work(4);
  OK(aclrtLaunchHostFunc(nullptr, [](void*) { sleep_ms(100); }, nullptr));
  work.launch();
  REQUIRE(host(work.memory[2], 4)[0] == 7);  // too early, as on a device
  OK(aclrtSynchronizeStream(nullptr));
  REQUIRE(host(work.memory[2], 4)[0] == 1);
}

CASE(a_view_past_its_memory_faults) {
  start();
  Work work(100);
  work.replace(1, row(work.memory[1], 100, 100, 200));
  work.launch();
  require_fault("self: 400 bytes at");
}

CASE(a_view_past_its_storage_faults) {
  start();
  Work work(8);
  work.replace(2, row(work.memory[2], 8, 0, 4));
  work.launch();
  require_fault("gradInput: the view reaches elements [0, 7] of a storage of 4");
}

// Shapes and strides that no memory has: the kernel faults, the process lives.
CASE(tensors_that_no_memory_has_fault) {
  start();
  constexpr int64_t huge = INT64_C(1) << 62;
  struct Hostile {
    std::vector<int64_t> shape, strides, storage;
    int64_t offset;
    const char* words;
  };
  const Hostile all[] = {
      {{-1}, {1}, {8}, 0, "(-1,) has a negative dim"},
      {{huge}, {0}, {1}, 0, "the host cannot do this"},
      {{1 << 30, 1 << 30, 1 << 30}, {0, 0, 0}, {1}, 0, "the host cannot do this"},
      {{2}, {huge}, {huge, huge}, 0, "no memory has"},
      {{3}, {huge}, {huge, huge}, 0, "overflow"},
      {{2}, {-1}, {8}, 0, "reaches elements [-1, 0] of a storage of 8"},
      {{2}, {1}, {8}, -1, "reaches elements [-1, 0] of a storage of 8"},
      {{2}, {1}, {8}, INT64_MAX, "overflow"},
  };
  for (const Hostile& h : all) {
    Work work(8);
    for (size_t i = 0; i < 3; i++)
      work.replace(i, aclCreateTensor(h.shape.data(), h.shape.size(), ACL_FLOAT, h.strides.data(), h.offset,
                                      ACL_FORMAT_ND, h.storage.data(), h.storage.size(), work.memory[i]));
    OK(work.first());
    void* workspace = nullptr;
    OK(aclrtMalloc(&workspace, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    OK(aclnnLogSigmoidBackward(workspace, work.workspace, work.executor, nullptr));
    REQUIRE(aclrtSynchronizeStream(nullptr) != 0);
    REQUIRE(message_has(h.words));
    OK(aclrtResetDeviceForce(0));
    OK(aclrtSetDevice(0));
  }
}

CASE(memory_of_another_device_faults) {
  start();
  OK(aclrtSetDevice(1));
  void* foreign = floats({1, 2, 3});
  OK(aclrtSetDevice(0));
  Work work(3);
  work.replace(0, row(foreign, 3));
  work.launch();
  require_fault("is memory of device 1, used on device 0");
}

CASE(host_memory_in_a_tensor_faults) {
  start();
  alignas(32) float values[8] = {};
  Work work(3);
  work.replace(0, row(values, 3));
  work.launch();
  require_fault("is not device memory");
}

CASE(unaligned_tensor_data_faults) {
  start();
  Work work(8);
  work.replace(0, row(static_cast<char*>(work.memory[0]) + 4, 4));
  work.replace(1, row(work.memory[1], 4));
  work.replace(2, row(work.memory[2], 4));
  work.launch();
  require_fault("is not 32-byte aligned");
}

CASE(memory_freed_before_the_kernel_runs_faults) {
  start();
  Work work(3);
  OK(aclrtLaunchHostFunc(nullptr, [](void*) { sleep_ms(50); }, nullptr));
  work.launch();
  OK(aclrtFree(work.memory[0]));
  require_fault("gradOutput: 12 bytes at");
}

CASE(a_broken_context_refuses_more_work) {
  start();
  Work work(8), later(3);
  work.replace(2, row(work.memory[2], 8, 0, 4));
  OK(later.first());
  work.launch();
  REQUIRE(aclrtSynchronizeStream(nullptr) == 507015);
  REQUIRE(later.second() == 361001);
  float value;
  REQUIRE(aclrtMemcpy(&value, 4, later.memory[0], 4, ACL_MEMCPY_DEVICE_TO_HOST) == 507015);
  REQUIRE(aclrtSynchronizeStream(nullptr) == 507015);  // it stays broken
  REQUIRE(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == 507015);
  REQUIRE(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == 0);
}

CASE(an_overrun_is_found_when_the_block_is_freed) {
  start();
  OK(aclemuInject("aclnnLogSigmoidBackward=overrun"));
  Work work(16);  // exactly 64 bytes, 96 with the padding
  work.replace(2, row(work.memory[2], 16));
  work.run();
  OK(aclrtFree(work.memory[2]));  // the stray elements lie in the padding: undetected, as on a device
  void* exact = nullptr;
  OK(aclrtMallocAlign32(&exact, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  work.replace(2, row(exact, 16));
  work.run();
  REQUIRE(aclrtFree(exact) == 507015);
  REQUIRE(message_has("was written") && aclemuMisuseCount() == 1);
}

int main(int argc, char** argv) { return run_named(argc, argv); }
