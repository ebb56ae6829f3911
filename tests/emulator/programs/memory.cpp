// Device memory, tensors and executors: bounds, use after free, single use, deferred faults, recovery, threads.
#include <sys/wait.h>
#include <unistd.h>

#include "aclnnop/aclnn_logsigmoid_backward.h"
#include "checks.h"

namespace {

void start() {
  OK(aclInit(nullptr));
  OK(aclrtSetDevice(0));
}

// out = sigmoid(-0) * gradOutput on n elements, all in their own memory.
struct Work {
  explicit Work(int64_t n) : n(n), memory{floats(std::vector<float>(n, 2)), floats(std::vector<float>(n, 0)), floats(std::vector<float>(n, 7))} {
    for (void* m : memory) tensors.push_back(row(m, n));
  }
  int first() { return aclnnLogSigmoidBackwardGetWorkspaceSize(tensors[0], tensors[1], tensors[1], tensors[2], &workspace, &executor); }
  int second(aclrtStream stream = nullptr) { return aclnnLogSigmoidBackward(nullptr, 0, executor, stream); }
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

// The kernel's fault: found when the stream is synchronised, shown by copies too, gone after a reset.
void require_fault(const char* words) {
  REQUIRE(aclrtSynchronizeStream(nullptr) == 507015);
  REQUIRE(message_has(words));
  aclrtStreamStatus status;
  REQUIRE(aclrtStreamQuery(nullptr, &status) == 507015);
  OK(aclrtResetDeviceForce(0));
  OK(aclrtSetDevice(0));
  Work healthy(3);
  OK(healthy.first());
  OK(healthy.second());
  OK(aclrtSynchronizeStream(nullptr));
  REQUIRE(host(healthy.memory[2], 3)[2] == 1);
}

}  // namespace

CASE(the_host_cannot_touch_device_memory) {
  start();
  void* memory = floats({1});
  for (bool write : {false, true}) {
    pid_t child = fork();
    if (child == 0) {
      close(2);  // a sanitizer reports the signal that this is about
      volatile float* p = static_cast<float*>(memory);
      if (write) *p = 1;
      else static_cast<void>(*p);
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
  OK(aclrtLaunchCallback([](void*) { sleep_ms(50); }, nullptr, ACL_CALLBACK_BLOCK, nullptr));
  OK(aclrtMemcpyAsync(memory, 4, pinned, 4, ACL_MEMCPY_HOST_TO_DEVICE, nullptr));
  *value = 2;  // still in time: the copy is only queued
  OK(aclrtSynchronizeStream(nullptr));
  REQUIRE(host(memory, 1)[0] == 2);
  float pageable = 3;
  OK(aclrtLaunchCallback([](void*) { sleep_ms(50); }, nullptr, ACL_CALLBACK_BLOCK, nullptr));
  OK(aclrtMemcpyAsync(memory, 4, &pageable, 4, ACL_MEMCPY_HOST_TO_DEVICE, nullptr));
  REQUIRE(host(memory, 1)[0] == 3);  // pageable memory: done when the call returns
  OK(aclrtFreeHost(pinned));
  REQUIRE(aclrtFreeHost(pinned) == 107000);
}

CASE(a_synchronous_copy_waits_for_no_stream) {
  start();
  Work work(4);
  OK(aclrtLaunchCallback([](void*) { sleep_ms(100); }, nullptr, ACL_CALLBACK_BLOCK, nullptr));
  OK(work.first());
  OK(work.second());
  REQUIRE(host(work.memory[2], 4)[0] == 7);  // too early, as on a device
  OK(aclrtSynchronizeStream(nullptr));
  REQUIRE(host(work.memory[2], 4)[0] == 1);
}

CASE(a_view_past_its_memory_faults) {
  start();
  Work work(100);
  work.replace(1, row(work.memory[1], 100, 100, 200));
  OK(work.first());
  OK(work.second());
  require_fault("self: 400 bytes at");
}

CASE(a_view_past_its_storage_faults) {
  start();
  Work work(8);
  work.replace(2, row(work.memory[2], 8, 0, 4));
  OK(work.first());
  OK(work.second());
  require_fault("gradInput: the view reaches elements [0, 7] of a storage of 4");
}

CASE(memory_of_another_device_faults) {
  start();
  OK(aclrtSetDevice(1));
  void* foreign = floats({1, 2, 3});
  OK(aclrtSetDevice(0));
  Work work(3);
  work.replace(0, row(foreign, 3));
  OK(work.first());
  OK(work.second());
  require_fault("is memory of device 1, used on device 0");
}

CASE(host_memory_in_a_tensor_faults) {
  start();
  alignas(32) float values[8] = {};
  Work work(3);
  work.replace(0, row(values, 3));
  OK(work.first());
  OK(work.second());
  require_fault("is not device memory");
}

CASE(unaligned_tensor_data_faults) {
  start();
  Work work(8);
  work.replace(0, row(static_cast<char*>(work.memory[0]) + 4, 4));
  work.replace(1, row(work.memory[1], 4));
  work.replace(2, row(work.memory[2], 4));
  OK(work.first());
  OK(work.second());
  require_fault("is not 32-byte aligned");
}

CASE(memory_freed_before_the_kernel_runs_faults) {
  start();
  Work work(3);
  OK(aclrtLaunchCallback([](void*) { sleep_ms(50); }, nullptr, ACL_CALLBACK_BLOCK, nullptr));
  OK(work.first());
  OK(work.second());
  OK(aclrtFree(work.memory[0]));
  require_fault("gradOutput: 12 bytes at");
}

CASE(a_broken_context_refuses_more_work) {
  start();
  Work work(8), later(3);
  work.replace(2, row(work.memory[2], 8, 0, 4));
  OK(later.first());
  OK(work.first());
  OK(work.second());
  REQUIRE(aclrtSynchronizeStream(nullptr) == 507015);
  REQUIRE(later.second() == 361001);
  float value;
  REQUIRE(aclrtMemcpy(&value, 4, later.memory[0], 4, ACL_MEMCPY_DEVICE_TO_HOST) == 507015);
  REQUIRE(aclrtSynchronizeStream(nullptr) == 507015);  // it stays broken
  REQUIRE(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == 507015);
  REQUIRE(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL) == 0);
}

CASE(an_executor_serves_once) {
  start();
  Work work(3);
  OK(work.first());
  OK(work.second());
  REQUIRE(work.second() == 561103);
  REQUIRE(message_has("an executor serves one second phase"));
  OK(work.first());
  REQUIRE(aclnnLogSigmoidBackward(nullptr, 32, work.executor, nullptr) == 161001);
  REQUIRE(work.second() == 561103);  // the error used it up as well
  REQUIRE(aclnnLogSigmoidBackward(nullptr, 0, nullptr, nullptr) == 161001);
  OK(work.first());
  OK(aclDestroyAclOpExecutor(work.executor));
  REQUIRE(aclDestroyAclOpExecutor(work.executor) == 561103);
  OK(aclrtSynchronizeStream(nullptr));
  work.end();
  REQUIRE(aclemuLiveCount("executors") == 0 && aclemuLiveCount("tensors") == 0 && aclemuLiveCount("allocations") == 0);
}

CASE(a_repeatable_executor_serves_until_destroyed) {
  start();
  Work work(3);
  OK(work.first());
  void* other = floats({4, 4, 4});
  REQUIRE(aclSetInputTensorAddr(work.executor, 0, work.tensors[0], other) == 161002);
  OK(aclSetAclOpExecutorRepeatable(work.executor));
  OK(work.second());
  OK(aclSetInputTensorAddr(work.executor, 0, work.tensors[0], other));
  OK(aclrtSynchronizeStream(nullptr));
  REQUIRE(host(work.memory[2], 3)[0] == 1);
  OK(work.second());
  OK(aclrtSynchronizeStream(nullptr));
  REQUIRE(host(work.memory[2], 3)[0] == 2);
  OK(aclDestroyAclOpExecutor(work.executor));
}

CASE(tensors_live_until_the_second_phase) {
  start();
  Work work(3);
  OK(work.first());
  OK(aclDestroyTensor(work.tensors[0]));
  REQUIRE(work.second() == 561103);
  REQUIRE(message_has("gradOutput: the tensor was destroyed between the phases"));
  REQUIRE(aclDestroyTensor(work.tensors[0]) == 561103);
  REQUIRE(work.first() == 561103);  // a destroyed tensor is no argument
  REQUIRE(aclemuMisuseCount() == 3);
}

CASE(tensors_may_go_after_the_second_phase) {
  start();
  Work work(3);
  OK(aclrtLaunchCallback([](void*) { sleep_ms(30); }, nullptr, ACL_CALLBACK_BLOCK, nullptr));
  OK(work.first());
  OK(work.second());
  for (aclTensor* t : work.tensors) OK(aclDestroyTensor(t));
  OK(aclrtSynchronizeStream(nullptr));
  REQUIRE(host(work.memory[2], 3)[0] == 1);
}

CASE(tensors_answer_what_they_were_told) {
  int64_t shape[] = {2, 3}, strides[] = {1, 2}, storage[] = {9}, offset = 0, *values = nullptr;
  uint64_t count = 0;
  aclDataType type;
  aclFormat format;
  void* address = nullptr;
  aclTensor* tensor = aclCreateTensor(shape, 2, ACL_BF16, strides, 3, ACL_FORMAT_NCHW, storage, 1, shape);
  OK(aclGetViewShape(tensor, &values, &count));
  REQUIRE(count == 2 && values[1] == 3);
  delete[] values;
  OK(aclGetViewStrides(tensor, &values, &count));
  REQUIRE(count == 2 && values[1] == 2);
  delete[] values;
  OK(aclGetStorageShape(tensor, &values, &count));
  REQUIRE(count == 1 && values[0] == 9);
  delete[] values;
  OK(aclGetViewOffset(tensor, &offset));
  OK(aclGetDataType(tensor, &type));
  OK(aclGetFormat(tensor, &format));
  OK(aclGetRawTensorAddr(tensor, &address));
  REQUIRE(offset == 3 && type == ACL_BF16 && format == ACL_FORMAT_NCHW && address == shape);
  REQUIRE(aclCreateTensor(nullptr, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr) == nullptr);
  aclTensor* scalar = aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  REQUIRE(scalar != nullptr);
  const aclTensor* both[] = {tensor, scalar};
  OK(aclDestroyTensorList(aclCreateTensorList(both, 2)));
  REQUIRE(aclemuLiveCount("tensors") == 0);
}

CASE(an_overrun_is_found_when_the_block_is_freed) {
  start();
  OK(aclemuInject("aclnnLogSigmoidBackward=overrun"));
  Work work(16);  // exactly 64 bytes, 96 with the padding
  work.replace(2, row(work.memory[2], 16));
  OK(work.first());
  OK(work.second());
  OK(aclrtSynchronizeStream(nullptr));
  OK(aclrtFree(work.memory[2]));  // the stray elements lie in the padding: undetected, as on a device
  void* exact = nullptr;
  OK(aclrtMallocAlign32(&exact, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  work.replace(2, row(exact, 16));
  OK(work.first());
  OK(work.second());
  OK(aclrtSynchronizeStream(nullptr));
  REQUIRE(aclrtFree(exact) == 507015);
  REQUIRE(message_has("was written") && aclemuMisuseCount() == 1);
}

CASE(a_hanging_kernel_is_timed_out_and_reset) {
  start();
  OK(aclemuInject("aclnnLogSigmoidBackward#1=hang"));
  Work work(3);
  OK(work.first());
  OK(work.second());
  REQUIRE(aclrtSynchronizeStreamWithTimeout(nullptr, 20) == 507046);
  OK(aclrtResetDeviceForce(0));
  OK(aclrtSetDevice(0));
  Work healthy(3);
  OK(healthy.first());
  OK(healthy.second());
  OK(aclrtSynchronizeStream(nullptr));
}

CASE(a_hanging_kernel_ends_with_the_operator_timeout) {
  start();
  OK(aclrtSetOpExecuteTimeOut(1));
  OK(aclemuInject("aclnnLogSigmoidBackward=hang"));
  Work work(3);
  OK(work.first());
  OK(work.second());
  REQUIRE(aclrtSynchronizeStream(nullptr) == 507014);
  REQUIRE(message_has("the kernel did not end within 1000 ms"));
}

CASE(calls_are_counted_and_bad_faults_refused) {
  start();
  Work work(3);
  REQUIRE(aclemuCallCount("aclnnLogSigmoidBackwardGetWorkspaceSize") == 0);
  OK(aclemuInject("aclnnLogSigmoidBackwardGetWorkspaceSize#2=561003"));
  OK(work.first());
  OK(aclDestroyAclOpExecutor(work.executor));
  REQUIRE(work.first() == 561003);
  OK(work.first());
  REQUIRE(aclemuCallCount("aclnnLogSigmoidBackwardGetWorkspaceSize") == 3);
  for (const char* bad : {"aclrtMalloc", "=5", "aclrtMalloc=", "aclrtMalloc#0=5", "aclrtMalloc#x=5", "aclrtMalloc=explode", "aclrtMalloc=fault", "aclrtMalloc=hang:3"}) {
    REQUIRE(aclemuInject(bad) == 100000);
    REQUIRE(message_has(bad));
  }
  REQUIRE(aclemuLiveCount("unicorns") == UINT64_MAX);
}

CASE(twenty_thousand_calls_leave_nothing) {
  start();
  auto resident = [] {
    long pages = 0, ignored = 0;
    FILE* statm = fopen("/proc/self/statm", "r");
    REQUIRE(statm != nullptr && fscanf(statm, "%ld %ld", &ignored, &pages) == 2);
    fclose(statm);
    return pages * sysconf(_SC_PAGESIZE);
  };
  long before = 0;
  for (int i = 0; i < 20000; i++) {
    if (i == 2000) before = resident();  // pools have their size by then
    Work work(33);
    OK(work.first());
    if (i % 5 == 0) {
      OK(aclDestroyAclOpExecutor(work.executor));
    } else {
      OK(work.second());
    }
    if (i % 7 == 0) REQUIRE(aclnnLogSigmoidBackwardGetWorkspaceSize(nullptr, nullptr, nullptr, nullptr, &work.workspace, &work.executor) == 161001);
    OK(aclrtSynchronizeStream(nullptr));
    work.end();
  }
  for (const char* kind : {"tensors", "executors", "allocations", "bytes"}) REQUIRE(aclemuLiveCount(kind) == 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // Freed device memory rests in a quarantine of 64 MiB; 18,000 calls that each lost 1 KiB would take 18 MiB more.
  REQUIRE(resident() - before < (64L << 20) + (8L << 20));
#endif
}

CASE(many_threads_and_devices) {
  OK(aclInit(nullptr));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; t++) {
    threads.emplace_back([t] {
      OK(aclrtSetDevice(t % 4));
      aclrtStream stream = nullptr;
      OK(aclrtCreateStream(&stream));
      for (int i = 0; i < 50; i++) {
        Work work(65 + t);
        OK(work.first());
        OK(work.second(stream));
        OK(aclrtSynchronizeStream(stream));
        for (float v : host(work.memory[2], 65 + t)) REQUIRE(v == 1);
        work.end();
      }
      OK(aclrtDestroyStream(stream));
      OK(aclrtResetDevice(t % 4));
    });
  }
  for (auto& thread : threads) thread.join();
  for (const char* kind : {"tensors", "executors", "streams", "contexts", "allocations", "bytes"}) REQUIRE(aclemuLiveCount(kind) == 0);
  REQUIRE(aclemuMisuseCount() == 0);
  OK(aclFinalize());
}

int main(int argc, char** argv) { return run_named(argc, argv); }
