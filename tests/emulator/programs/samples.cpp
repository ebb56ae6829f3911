// What CANN's own samples use beyond calls of operators: callbacks, host functions, rows of memory, buffers, versions.
#include <pthread.h>

#include <atomic>

#include "acl/acl_prof.h"
#include "aclnn/aclnn_base.h"
#include "work.h"

namespace {

std::atomic<int> ran{0};
std::atomic<uint64_t> ran_on{0};

void note(void*) {
  ran_on = static_cast<uint64_t>(pthread_self());
  ran++;
}

}  // namespace

CASE(a_callback_runs_on_the_subscribed_thread) {
  start();
  aclrtStream stream = new_stream();
  REQUIRE(aclrtLaunchCallback(note, nullptr, ACL_CALLBACK_BLOCK, stream) == 107015);
  REQUIRE(message_has("aclrtSubscribeReport first"));
  REQUIRE(aclrtProcessReport(10) == 107012);
  std::atomic<bool> over{false};
  std::thread helper([&] {
    while (!over) static_cast<void>(aclrtProcessReport(5));
  });
  uint64_t thread = static_cast<uint64_t>(helper.native_handle());
  OK(aclrtSubscribeReport(thread, stream));
  REQUIRE(aclrtSubscribeReport(thread, stream) == 107011);
  OK(aclrtLaunchCallback(note, nullptr, ACL_CALLBACK_BLOCK, stream));
  OK(aclrtSynchronizeStream(stream));
  REQUIRE(ran == 1 && ran_on == thread);
  OK(aclrtUnSubscribeReport(thread, stream));
  REQUIRE(aclrtUnSubscribeReport(thread, stream) == 107012);
  over = true;
  helper.join();
  REQUIRE(aclrtLaunchCallback(note, nullptr, ACL_CALLBACK_BLOCK, stream) == 107015);
}

CASE(a_callback_that_does_not_block_lets_the_stream_go_on) {
  start();
  uint64_t self = static_cast<uint64_t>(pthread_self());
  OK(aclrtSubscribeReport(self, nullptr));
  OK(aclrtLaunchCallback(note, nullptr, ACL_CALLBACK_NO_BLOCK, nullptr));
  OK(aclrtSynchronizeStream(nullptr));
  REQUIRE(ran == 0);
  OK(aclrtProcessReport(1000));
  REQUIRE(ran == 1 && ran_on == self);
  REQUIRE(aclrtProcessReport(5) == 507012);
  OK(aclrtUnSubscribeReport(self, nullptr));
}

CASE(a_host_function_needs_no_subscription) {
  start();
  OK(aclrtLaunchHostFunc(nullptr, note, nullptr));
  OK(aclrtSynchronizeStream(nullptr));
  REQUIRE(ran == 1);
  REQUIRE(aclrtLaunchHostFunc(nullptr, nullptr, nullptr) == 100000);
}

static uint32_t told_code = 0, told_task = 0, told_device = 9;

CASE(a_fault_is_told_to_the_exception_callback) {
  start();
  OK(aclrtSetExceptionInfoCallback([](aclrtExceptionInfo* info) {
    told_code = aclrtGetErrorCodeFromExceptionInfo(info);
    told_task = aclrtGetTaskIdFromExceptionInfo(info);
    told_device = aclrtGetDeviceIdFromExceptionInfo(info);
  }));
  OK(aclemuInject("aclnnLogSigmoidBackward=fault:507035"));
  Work work(3);
  work.launch();
  uint32_t task = 0;
  OK(aclrtGetThreadLastTaskId(&task));
  REQUIRE(aclrtSynchronizeStream(nullptr) == 507035);
  REQUIRE(told_code == 507035 && told_task == task && told_device == 0);
  REQUIRE(aclrtGetErrorCodeFromExceptionInfo(nullptr) == 0xFFFFFFFF);
  aclrtErrorInfo info;
  OK(aclrtGetErrorVerbose(0, &info));
  REQUIRE(info.errorType == ACL_RT_ERROR_AICORE && info.detail.aicoreErrType == ACL_RT_AICORE_ERROR_SW);
}

CASE(rows_are_copied_with_their_pitch) {
  start();
  float values[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}}, back[2][3] = {};
  void* memory = nullptr;
  OK(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtMemcpy2d(memory, 32, values, 16, 12, 2, ACL_MEMCPY_HOST_TO_DEVICE));
  OK(aclrtMemcpy2dAsync(back, 12, memory, 32, 12, 2, ACL_MEMCPY_DEVICE_TO_HOST, nullptr));
  OK(aclrtSynchronizeStream(nullptr));
  REQUIRE(back[0][2] == 3 && back[1][0] == 5 && back[1][2] == 7);
  REQUIRE(aclrtMemcpy2d(memory, 8, values, 16, 12, 2, ACL_MEMCPY_HOST_TO_DEVICE) == 107000);
  REQUIRE(aclrtMemcpy2d(memory, SIZE_MAX / 2, values, 16, 12, 3, ACL_MEMCPY_HOST_TO_DEVICE) == 107000);
}

CASE(copies_of_nothing_succeed_and_wild_pointers_are_told) {
  start();
  char byte = 0;
  void *memory = nullptr, *wild = reinterpret_cast<void*>(0x10);
  OK(aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtMemcpy(memory, 0, &byte, 0, ACL_MEMCPY_HOST_TO_DEVICE));
  OK(aclrtMemcpyAsync(memory, 0, &byte, 0, ACL_MEMCPY_HOST_TO_DEVICE, nullptr));
  REQUIRE(aclrtMemcpy(memory, 8, &byte, 1, static_cast<aclrtMemcpyKind>(77)) == 107000);
  REQUIRE(message_has("kind 77 is unknown"));
  REQUIRE(aclrtMemset(wild, 8, 0, 8) == 107000);
  REQUIRE(message_has("no memory of the host's or of a device"));
  REQUIRE(aclrtMemcpy(memory, 8, wild, 8, ACL_MEMCPY_HOST_TO_DEVICE) == 107000);
  REQUIRE(aclrtMemcpy(reinterpret_cast<void*>(UINTPTR_MAX - 3), 8, memory, 8, ACL_MEMCPY_DEVICE_TO_HOST) == 107000);
}

CASE(addresses_say_where_they_lie) {
  start();
  void *device = nullptr, *pinned = nullptr, *mapped = nullptr;
  static char own[4096];
  aclrtPtrAttributes told;
  OK(aclrtMalloc(&device, 8, ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtMallocHost(&pinned, 8));
  OK(aclrtPointerGetAttributes(device, &told));
  REQUIRE(told.location.type == ACL_MEM_LOCATION_TYPE_DEVICE && told.location.id == 0);
  OK(aclrtPointerGetAttributes(pinned, &told));
  REQUIRE(told.location.type == ACL_MEM_LOCATION_TYPE_HOST);
  OK(aclrtPointerGetAttributes(own, &told));
  REQUIRE(told.location.type == ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  OK(aclrtHostRegister(own, sizeof own, ACL_HOST_REGISTER_MAPPED, &mapped));
  OK(aclrtPointerGetAttributes(own + 9, &told));
  REQUIRE(mapped == own && told.location.type == ACL_MEM_LOCATION_TYPE_HOST);
  OK(aclrtHostUnregister(own));
  REQUIRE(aclrtHostUnregister(own) == 107000);
}

CASE(null_pointers_of_executors_are_561103_and_odd_addresses_succeed) {
  start();
  Work work(3);
  OK(work.first());
  aclTensor* tensor = work.tensors[0];
  REQUIRE(aclDestroyAclOpExecutor(nullptr) == 561103);
  REQUIRE(aclSetAclOpExecutorRepeatable(nullptr) == 561103);
  REQUIRE(aclSetInputTensorAddr(nullptr, 0, tensor, work.memory[0]) == 561103);
  REQUIRE(aclSetOutputTensorAddr(work.executor, 0, nullptr, work.memory[0]) == 561103);
  REQUIRE(aclSetTensorAddr(nullptr, 0, tensor, work.memory[0]) == 561103);
  OK(aclSetInputTensorAddr(work.executor, 0, tensor, work.memory[0]));  // not repeatable
  OK(aclSetAclOpExecutorRepeatable(work.executor));
  OK(aclSetInputTensorAddr(work.executor, 99, tensor, work.memory[0]));
  OK(aclSetOutputTensorAddr(work.executor, 0, tensor, nullptr));
  OK(aclDestroyAclOpExecutor(work.executor));
}

CASE(lists_and_arrays_tell_their_length) {
  int64_t ints[] = {1, 2, 3};
  float reals[] = {1, 2};
  bool flags[] = {true};
  uint64_t size = 0;
  aclIntArray* a = aclCreateIntArray(ints, 3);
  aclFloatArray* b = aclCreateFloatArray(reals, 2);
  aclBoolArray* c = aclCreateBoolArray(flags, 1);
  OK(aclGetIntArraySize(a, &size));
  REQUIRE(size == 3);
  OK(aclGetFloatArraySize(b, &size));
  REQUIRE(size == 2);
  OK(aclGetBoolArraySize(c, &size));
  REQUIRE(size == 1);
  aclTensor* members[] = {row(nullptr, 1), row(nullptr, 2)};
  aclTensorList* list = aclCreateTensorList(members, 2);
  OK(aclGetTensorListSize(list, &size));
  REQUIRE(size == 2);
  REQUIRE(aclGetTensorListSize(nullptr, &size) == 161001);
  REQUIRE(aclSetDynamicInputTensorAddr(nullptr, 0, 0, list, nullptr) == 561103);
  REQUIRE(aclSetDynamicOutputTensorAddr(nullptr, 0, 0, list, nullptr) == 561103);
  OK(aclDestroyTensorList(list));
  float one = 1;
  const aclScalar* numbers[] = {aclCreateScalar(&one, ACL_FLOAT)};
  aclScalarList* scalars = aclCreateScalarList(numbers, 1);
  OK(aclGetScalarListSize(scalars, &size));
  REQUIRE(size == 1);
  OK(aclDestroyScalarList(scalars));
}

CASE(a_tensor_is_described_anew) {
  aclTensor* tensor = row(nullptr, 3);
  int64_t shape[] = {2, 5}, *told = nullptr;
  uint64_t rank = 0;
  OK(aclInitTensor(tensor, shape, 2, ACL_INT8, nullptr, 0, ACL_FORMAT_ND, shape, 2, nullptr));
  OK(aclGetViewShape(tensor, &told, &rank));
  REQUIRE(rank == 2 && told[1] == 5);
  delete[] told;
  OK(aclDestroyTensor(tensor));
}

CASE(small_questions) {
  start();
  int32_t least = 0, greatest = 9, number = 0;
  int64_t value = 0;
  uint64_t when = 0;
  aclrtStream stream = &least;
  aclrtEvent event = nullptr;
  aclrtEventStatus status;
  aclrtDeviceStatus health;
  char package[] = "runtime";
  OK(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
  REQUIRE(least > greatest);
  OK(aclsysGetVersionNum(package, &number));
  REQUIRE(number > 0);
  OK(aclrtCtxGetCurrentDefaultStream(&stream));
  OK(aclrtSynchronizeStream(stream));
  OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &value));
  REQUIRE(value > 0);
  REQUIRE(aclrtGetDeviceInfo(0, static_cast<aclrtDevAttr>(7), &value) == 207000);
  OK(aclrtQueryDeviceStatus(0, &health));
  REQUIRE(health == ACL_RT_DEVICE_STATUS_NORMAL);
  REQUIRE(aclrtDestroyEvent(nullptr) == 100000);
  OK(aclrtCreateEvent(&event));
  REQUIRE(aclrtEventGetTimestamp(event, &when) == 107006);
  OK(aclrtRecordEvent(event, nullptr));
  OK(aclrtSynchronizeEvent(event));
  OK(aclrtEventGetTimestamp(event, &when));
  OK(aclrtQueryEvent(event, &status));
  REQUIRE(when > 0 && status == ACL_EVENT_STATUS_COMPLETE);
  OK(aclrtDestroyEvent(event));
  OK(aclrtCreateStream(&stream));
  OK(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
  REQUIRE(aclrtSetStreamFailureMode(stream, 2) == 107000);
  OK(aclrtDeviceEnablePeerAccess(1, 0));
  OK(aclrtDeviceDisablePeerAccess(1));
  int32_t active = 9;
  OK(aclrtGetPrimaryCtxState(0, nullptr, &active));
  REQUIRE(active == 1);
  OK(aclrtGetPrimaryCtxState(7, nullptr, &active));
  REQUIRE(active == 0 && aclrtGetPrimaryCtxState(8, nullptr, &active) == 107001);
  REQUIRE(aclFloat16ToFloat(aclFloatToFloat16(0.5f)) == 0.5f);
  int data = 3;
  aclDataBuffer* buffer = aclCreateDataBuffer(&data, sizeof data);
  REQUIRE(aclGetDataBufferAddr(buffer) == &data && aclGetDataBufferSizeV2(buffer) == sizeof data);
  OK(aclDestroyDataBuffer(buffer));
}

CASE(a_stream_tells_how_it_was_made) {
  start();
  aclrtStream stream = nullptr;
  uint32_t priority = 9, flags = 9, cubes = 0, vectors = 0;
  OK(aclrtCreateStreamWithConfig(&stream, 3, 1));
  OK(aclrtStreamGetPriority(stream, &priority));
  OK(aclrtStreamGetFlags(stream, &flags));
  REQUIRE(priority == 3 && flags == 1);
  OK(aclrtStreamGetPriority(nullptr, &priority));
  REQUIRE(priority == 0 && aclrtStreamGetFlags(stream, nullptr) == 100000);
  OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_CUBE_CORE, &cubes));
  OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_VECTOR_CORE, &vectors));
  REQUIRE(cubes > 0 && vectors >= cubes);
}

extern "C" int aclopCompileAndExecute(const char* opType, int, const void* const*, const void* const*, int,
                                      const void* const*, void* const*, const void*, int, int, const char*,
                                      aclrtStream stream);

CASE(an_operator_of_the_older_interface_is_refused_by_the_next_wait) {
  start();
  float back[2] = {0, 0};
  void* memory = floats({1, 2});
  aclrtStream stream = new_stream();
  auto copy = [&] { return aclrtMemcpy(back, sizeof back, memory, sizeof back, ACL_MEMCPY_DEVICE_TO_HOST); };
  for (aclrtStream each : {stream, static_cast<aclrtStream>(nullptr)}) {
    auto call = [each] {
      OK(aclopCompileAndExecute("Mish", 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr, 0, 0, nullptr, each));
    };
    call();
    REQUIRE(aclrtSynchronizeStream(each) == 507000);
    REQUIRE(copy() == 507000);  // torch_npu makes one then, and shows its words
    REQUIRE(message_has("operator Mish is not served"));
    call();
    REQUIRE(aclrtSynchronizeDevice() == 507000);
    OK(aclrtSynchronizeStream(each));
    OK(copy());
    REQUIRE(back[0] == 1 && back[1] == 2);
  }
  OK(aclrtFree(memory));
}

CASE(profiling_is_accepted) {
  start();
  uint32_t devices[] = {0};
  OK(aclprofInit("/tmp/nothing", 12));
  aclprofConfig* config = aclprofCreateConfig(devices, 1, ACL_AICORE_NONE, nullptr, ACL_PROF_ACL_API);
  REQUIRE(config != nullptr);
  OK(aclprofStart(config));
  OK(aclprofStop(config));
  OK(aclprofDestroyConfig(config));
  OK(aclprofFinalize());
  devices[0] = 99;
  REQUIRE(aclprofCreateConfig(devices, 1, ACL_AICORE_NONE, nullptr, 0) == nullptr);
}

int main(int argc, char** argv) { return run_named(argc, argv); }
