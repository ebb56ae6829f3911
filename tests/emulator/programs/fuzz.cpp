// Random calls of the API with good, stale and wild arguments: `./fuzz SEED CALLS`. It must neither crash nor hang.
#include <functional>
#include <random>

#include "acl/acl_prof.h"
#include "work.h"

namespace {

std::mt19937_64 engine;
char buffer[1 << 16];

uint64_t below(uint64_t n) { return engine() % n; }

template <class T>
T one_of(const std::vector<T>& values) {
  return values[below(values.size())];
}

// Handles and addresses that calls made, alive or not.
struct Pool {
  std::vector<void*> known;
  void* any() {
    switch (below(8)) {
      case 0:
        return nullptr;
      case 1:
        return reinterpret_cast<void*>(0x10 + below(4096));
      case 2:
        return reinterpret_cast<void*>(engine());
      default:
        return known.empty() ? nullptr : one_of(known);
    }
  }
  void keep(void* made) {
    if (made == nullptr) return;
    if (known.size() < 64)
      known.push_back(made);
    else
      known[below(64)] = made;
  }
};

Pool device, streams, events, tensors, scalars, lists, executors;

size_t size() { return one_of<size_t>({0, 1, 8, 64, 4096, 1 << 20, SIZE_MAX / 2, SIZE_MAX}); }
int32_t number() { return one_of<int32_t>({-2, -1, 0, 1, 2, 7, 8, 100, INT32_MAX, INT32_MIN}); }
int32_t soon() { return one_of<int32_t>({-7, 0, 1, 2}); }
template <class Enumeration>
Enumeration odd() {
  return static_cast<Enumeration>(one_of<int>({-1, 0, 1, 2, 3, 4, 9, 11, 12, 16, 17, 27, 34, 99}));
}
void* memory() { return below(3) == 0 ? static_cast<void*>(buffer) : device.any(); }
// A host buffer is as long as any size that a copy can have; longer ones run into memory that is not mapped.
size_t copied() { return one_of<size_t>({0, 1, 8, 64, 4096, SIZE_MAX / 2, SIZE_MAX}); }

aclTensor* new_tensor() {
  int64_t dims[26], strides[26];
  uint64_t rank = below(12) == 0 ? 26 : below(5);
  for (int i = 0; i < 26; i++) {
    dims[i] = one_of<int64_t>({-1, 0, 1, 2, 3, 8, INT64_MAX});
    strides[i] = one_of<int64_t>({-1, 0, 1, 2, 8, INT64_MAX, INT64_MIN});
  }
  return aclCreateTensor(below(9) == 0 ? nullptr : dims, rank, odd<aclDataType>(), below(3) == 0 ? strides : nullptr,
                         one_of<int64_t>({0, 0, 0, 3, -1, INT64_MAX}), odd<aclFormat>(), dims, rank, device.any());
}

aclTensor* tensor() { return static_cast<aclTensor*>(tensors.any()); }
aclOpExecutor* executor() { return static_cast<aclOpExecutor*>(executors.any()); }

void nothing(void*) {}
size_t pitch() { return one_of<size_t>({0, 7, 8, 64, 4096, SIZE_MAX}); }

void first_phase() {
  uint64_t workspace = 0;
  aclOpExecutor* made = nullptr;
  aclnnLogSigmoidBackwardGetWorkspaceSize(tensor(), tensor(), tensor(), tensor(), below(9) == 0 ? nullptr : &workspace,
                                          below(9) == 0 ? nullptr : &made);
  executors.keep(made);
}

// A fault leaves a context broken, and then every call ends early.
void begin_anew() {
  for (int32_t id = 0; id < 3; id++) aclrtResetDeviceForce(id);
  OK(aclrtSetDevice(0));
}

const std::vector<std::function<void()>> kCalls = {
    [] { aclrtSetDevice(static_cast<int32_t>(below(3))); },
    [] { aclrtSetDevice(number()); },
    [] { if (below(20) == 0) begin_anew(); },
    [] { int32_t id; aclrtGetDevice(below(9) == 0 ? nullptr : &id); },
    [] { void* made = nullptr; aclrtMalloc(below(9) == 0 ? nullptr : &made, size(), odd<aclrtMemMallocPolicy>()); device.keep(made); },
    [] { aclrtFree(device.any()); },
    [] { aclrtMemcpy(memory(), copied(), memory(), copied(), odd<aclrtMemcpyKind>()); },
    [] { aclrtMemcpyAsync(memory(), copied(), memory(), copied(), odd<aclrtMemcpyKind>(), streams.any()); },
    [] { aclrtMemset(memory(), copied(), number(), copied()); },
    [] { aclrtMemsetAsync(memory(), copied(), number(), copied(), streams.any()); },
    [] { aclrtMemcpy2d(memory(), pitch(), memory(), pitch(), 8, below(4), odd<aclrtMemcpyKind>()); },
    [] { aclrtStream made = nullptr; aclrtCreateStream(&made); streams.keep(made); },
    [] { aclrtDestroyStream(streams.any()); },
    [] { aclrtSynchronizeStreamWithTimeout(streams.any(), soon()); },
    [] { aclrtStreamStatus status; aclrtStreamQuery(streams.any(), &status); },
    [] { aclrtEvent made = nullptr; aclrtCreateEventWithFlag(&made, static_cast<uint32_t>(number())); events.keep(made); },
    [] { aclrtDestroyEvent(events.any()); },
    [] { aclrtRecordEvent(events.any(), streams.any()); },
    [] { aclrtStreamWaitEvent(streams.any(), events.any()); },
    [] { aclrtSynchronizeEventWithTimeout(events.any(), soon()); },
    [] { float ms; aclrtEventElapsedTime(&ms, events.any(), events.any()); },
    [] { uint64_t when; aclrtEventGetTimestamp(events.any(), &when); },
    [] { aclrtPtrAttributes told; aclrtPointerGetAttributes(device.any(), &told); },
    [] { aclrtLaunchCallback(below(9) == 0 ? nullptr : nothing, nullptr, odd<aclrtCallbackBlockType>(), streams.any()); },
    [] { aclrtLaunchHostFunc(streams.any(), below(9) == 0 ? nullptr : nothing, nullptr); },
    [] { aclrtProcessReport(soon()); },
    [] { tensors.keep(new_tensor()); },
    [] { tensors.keep(row(device.any(), 3)); },
    [] { aclDestroyTensor(tensor()); },
    [] { void* address; aclGetRawTensorAddr(tensor(), below(9) == 0 ? nullptr : &address); },
    [] { double value = 1; scalars.keep(aclCreateScalar(below(9) == 0 ? nullptr : &value, one_of<aclDataType>({ACL_FLOAT, ACL_INT8, ACL_DOUBLE, ACL_STRING}))); },
    [] { aclDestroyScalar(static_cast<aclScalar*>(scalars.any())); },
    [] { const aclTensor* members[] = {tensor(), tensor()}; lists.keep(aclCreateTensorList(members, below(3))); },
    [] { uint64_t n; aclGetTensorListSize(static_cast<aclTensorList*>(lists.any()), &n); },
    [] { aclDestroyTensorList(static_cast<aclTensorList*>(lists.any())); },
    first_phase,
    first_phase,
    [] { aclnnLogSigmoidBackward(device.any(), size(), executor(), streams.any()); },
    [] { aclSetAclOpExecutorRepeatable(executor()); },
    [] { aclSetInputTensorAddr(executor(), below(9), tensor(), device.any()); },
    [] { aclSetDynamicTensorAddr(executor(), 0, below(3), static_cast<aclTensorList*>(lists.any()), device.any()); },
    [] { aclDestroyAclOpExecutor(executor()); },
    [] { aclGetRecentErrMsg(); },
    [] { aclrtErrorInfo info; aclrtGetErrorVerbose(number(), &info); },
    [] { int64_t value; aclrtGetDeviceInfo(static_cast<uint32_t>(number()), odd<aclrtDevAttr>(), &value); },
};

}  // namespace

int main(int, char** argv) {
  engine.seed(strtoull(argv[1], nullptr, 10));
  OK(aclInit(nullptr));
  OK(aclrtSetDevice(0));
  for (unsigned long i = strtoul(argv[2], nullptr, 10); i > 0; i--) one_of(kCalls)();
  begin_anew();
  printf("ok\n");
  return 0;
}
