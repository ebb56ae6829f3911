// Tensors and executors: what they answer, single use, lifetimes, faults on order, threads, leaks.
#include <unistd.h>

#include <atomic>

#include "work.h"

CASE(an_executor_serves_once) {
  start();
  Work work(3);
  work.launch();
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
  OK(aclSetInputTensorAddr(work.executor, 0, work.tensors[0], work.memory[0]));  // accepted, also here
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
  OK(aclrtLaunchHostFunc(nullptr, [](void*) { sleep_ms(30); }, nullptr));
  work.launch();
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

CASE(a_hanging_kernel_is_timed_out_and_reset) {
  start();
  OK(aclemuInject("aclnnLogSigmoidBackward#1=hang"));
  Work work(3);
  work.launch();
  REQUIRE(aclrtSynchronizeStreamWithTimeout(nullptr, 20) == 507046);
  OK(aclrtResetDeviceForce(0));
  OK(aclrtSetDevice(0));
  require_healthy();
}

CASE(a_hanging_kernel_ends_with_the_operator_timeout) {
  start();
  OK(aclrtSetOpExecuteTimeOut(1));
  OK(aclemuInject("aclnnLogSigmoidBackward=hang"));
  Work work(3);
  work.launch();
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
  for (const char* bad : {"aclrtMalloc", "=5", "aclrtMalloc=", "aclrtMalloc#0=5", "aclrtMalloc#x=5",
                          "aclrtMalloc=explode", "aclrtMalloc=fault", "aclrtMalloc=hang:3"}) {
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
    if (i % 7 == 0)
      REQUIRE(aclnnLogSigmoidBackwardGetWorkspaceSize(nullptr, nullptr, nullptr, nullptr, &work.workspace,
                                                      &work.executor) == 161001);
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
      aclrtStream stream = new_stream();
      for (int i = 0; i < 50; i++) {
        Work work(65 + t);
        work.run(stream);
        for (float v : host(work.memory[2], 65 + t)) REQUIRE(v == 1);
        work.end();
      }
      OK(aclrtDestroyStream(stream));
      OK(aclrtResetDevice(t % 4));
    });
  }
  for (auto& thread : threads) thread.join();
  for (const char* kind : {"tensors", "executors", "streams", "contexts", "allocations", "bytes"})
    REQUIRE(aclemuLiveCount(kind) == 0);
  REQUIRE(aclemuMisuseCount() == 0);
  OK(aclFinalize());
}

// A reset by force under running calls: they fail or succeed, nothing crashes, and the device works afterwards.
CASE(a_device_is_reset_while_others_use_it) {
  OK(aclInit(nullptr));
  static std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([t] {
      while (!over) {
        aclrtStream stream = nullptr;
        if (aclrtSetDevice(0) != 0 || (t % 2 == 0 && aclrtCreateStream(&stream) != 0)) continue;
        int64_t n = 65;
        void* memory = nullptr;
        if (aclrtMalloc(&memory, 65 * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST) != 0) continue;
        aclTensor* tensor = row(memory, n);
        uint64_t size = 0;
        aclOpExecutor* executor = nullptr;
        OK(aclnnLogSigmoidBackwardGetWorkspaceSize(tensor, tensor, tensor, tensor, &size, &executor));
        if (aclnnLogSigmoidBackward(nullptr, 0, executor, stream) == 0) aclrtSynchronizeStream(stream);
        OK(aclDestroyTensor(tensor));
        aclrtFree(memory);
        if (stream != nullptr) aclrtDestroyStream(stream);
      }
    });
  }
  for (int i = 0; i < 50; i++) {
    sleep_ms(2);
    aclrtResetDeviceForce(0);
  }
  over = true;
  for (auto& thread : threads) thread.join();
  aclrtResetDeviceForce(0);
  OK(aclrtSetDevice(0));
  require_healthy();
  REQUIRE(aclemuLiveCount("executors") == 0);
}

int main(int argc, char** argv) { return run_named(argc, argv); }
