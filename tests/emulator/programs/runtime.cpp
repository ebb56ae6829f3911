// Initialisation, devices, contexts, streams, events, timeouts.
#include <atomic>

#include "checks.h"

namespace {

std::atomic<int> turn{0};

void wait_for_turn(void* which) {
  while (turn < static_cast<int>(reinterpret_cast<intptr_t>(which))) sleep_ms(1);
}
void next_turn(void*) { turn++; }

aclrtEvent new_event() {
  aclrtEvent event = nullptr;
  OK(aclrtCreateEvent(&event));
  return event;
}

void callback(aclrtStream stream, aclrtHostFunc fn, intptr_t data = 0) {
  OK(aclrtLaunchHostFunc(stream, fn, reinterpret_cast<void*>(data)));
}

aclrtEventRecordedStatus recorded(aclrtEvent event) {
  aclrtEventRecordedStatus status;
  OK(aclrtQueryEventStatus(event, &status));
  return status;
}

}  // namespace

CASE(init_is_counted) {
  uint64_t left = 9;
  REQUIRE(aclFinalize() == 100001);
  OK(aclInit(nullptr));
  REQUIRE(aclInit(nullptr) == 100002);
  REQUIRE(aclInit("other.json") == 100000);
  OK(aclFinalizeReference(&left));
  REQUIRE(left == 1);
  OK(aclFinalize());
  REQUIRE(aclFinalize() == 100037);
}

CASE(a_thread_has_no_context_until_it_sets_a_device) {
  OK(aclInit(nullptr));
  int32_t device = -1;
  void* memory = nullptr;
  aclrtContext context = nullptr;
  REQUIRE(aclrtGetDevice(&device) == 107002);
  REQUIRE(aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST) == 107002);
  OK(aclrtSetDevice(3));
  OK(aclrtGetDevice(&device));
  REQUIRE(device == 3);
  OK(aclrtGetCurrentContext(&context));
  std::thread([&] {
    int32_t other = -1;
    REQUIRE(aclrtGetDevice(&other) == 107002);
    REQUIRE(aclGetRecentErrMsg() == nullptr);  // asking is no mistake
    REQUIRE(aclrtSynchronizeDevice() == 107002 && message_has("no context"));
    OK(aclrtSetCurrentContext(context));
    OK(aclrtGetDevice(&other));
    REQUIRE(other == 3);
  }).join();
}

CASE(messages_belong_to_the_thread) {
  OK(aclInit(nullptr));
  REQUIRE(aclGetRecentErrMsg() == nullptr);
  REQUIRE(aclrtSetDevice(8) == 107001);
  REQUIRE(message_has("device 8: this process has devices 0..7"));
  REQUIRE(message_has("device 8"));  // shown again: the text is not cleared
  std::thread([] { REQUIRE(aclGetRecentErrMsg() == nullptr); }).join();
}

CASE(tasks_of_a_stream_run_later_and_in_order) {
  start();
  aclrtStream stream = new_stream();
  callback(stream, wait_for_turn, 1);
  static std::vector<int> order;
  for (int i = 0; i < 100; i++)
    callback(stream, [](void* n) { order.push_back(static_cast<int>(reinterpret_cast<intptr_t>(n))); }, i);
  aclrtStreamStatus status;
  OK(aclrtStreamQuery(stream, &status));
  REQUIRE(status == ACL_STREAM_STATUS_NOT_READY);
  turn = 1;
  OK(aclrtSynchronizeStream(stream));
  OK(aclrtStreamQuery(stream, &status));
  REQUIRE(status == ACL_STREAM_STATUS_COMPLETE);
  REQUIRE(order.size() == 100);
  for (int i = 0; i < 100; i++) REQUIRE(order[i] == i);
  OK(aclrtDestroyStream(stream));
}

CASE(streams_run_side_by_side) {
  start();
  aclrtStream first = new_stream(), second = new_stream();
  callback(first, wait_for_turn, 1);  // would block for ever if streams shared a worker
  callback(second, next_turn);
  OK(aclrtSynchronizeStream(second));
  OK(aclrtSynchronizeStream(first));
}

CASE(a_stream_waits_for_an_event_of_another) {
  start();
  aclrtStream first = new_stream(), second = new_stream();
  aclrtEvent event = new_event();
  REQUIRE(recorded(event) == ACL_EVENT_RECORDED_STATUS_COMPLETE);  // never recorded
  static std::atomic<bool> early{false};
  callback(first, wait_for_turn, 1);
  callback(first, [](void*) { turn = 2; });
  OK(aclrtRecordEvent(event, first));
  REQUIRE(recorded(event) == ACL_EVENT_RECORDED_STATUS_NOT_READY);
  OK(aclrtStreamWaitEvent(second, event));
  callback(second, [](void*) { early = turn != 2; });
  aclrtEventWaitStatus waited;
  OK(aclrtQueryEventWaitStatus(event, &waited));
  REQUIRE(waited == ACL_EVENT_WAIT_STATUS_NOT_READY);
  turn = 1;
  OK(aclrtSynchronizeStream(second));
  REQUIRE(!early);
  OK(aclrtSynchronizeEvent(event));
  REQUIRE(recorded(event) == ACL_EVENT_RECORDED_STATUS_COMPLETE);
  OK(aclrtQueryEventWaitStatus(event, &waited));
  REQUIRE(waited == ACL_EVENT_WAIT_STATUS_COMPLETE);
}

CASE(events_measure_time) {
  start();
  aclrtStream stream = new_stream();
  aclrtEvent before = new_event(), after = new_event();
  float ms = -1;
  REQUIRE(aclrtEventElapsedTime(&ms, before, after) == 107000);  // not recorded
  OK(aclrtRecordEvent(before, stream));
  callback(stream, [](void*) { sleep_ms(30); });
  OK(aclrtRecordEvent(after, stream));
  OK(aclrtSynchronizeEvent(after));
  OK(aclrtEventElapsedTime(&ms, before, after));
  REQUIRE(ms >= 30 && ms < 10000);
  OK(aclrtDestroyEvent(before));
  REQUIRE(aclrtDestroyEvent(before) == 107017);
}

CASE(waiting_has_an_end) {
  start();
  aclrtStream stream = new_stream();
  aclrtEvent event = new_event();
  callback(stream, wait_for_turn, 1);
  OK(aclrtRecordEvent(event, stream));
  REQUIRE(aclrtSynchronizeStreamWithTimeout(stream, 20) == 507046);
  REQUIRE(message_has("did not finish within 20 ms"));
  REQUIRE(aclrtSynchronizeEventWithTimeout(event, 20) == 507047);
  REQUIRE(aclrtSynchronizeDeviceWithTimeout(20) == 507046);
  REQUIRE(aclrtSynchronizeStreamWithTimeout(stream, 0) == 107000);
  turn = 1;
  OK(aclrtSynchronizeStreamWithTimeout(stream, -1));
  OK(aclrtSynchronizeDevice());
}

CASE(a_wait_for_an_event_has_an_end) {
  start();
  OK(aclrtSetOpWaitTimeout(1));
  aclrtStream first = new_stream(), second = new_stream();
  aclrtEvent event = new_event();
  callback(first, wait_for_turn, 1);
  OK(aclrtRecordEvent(event, first));
  OK(aclrtStreamWaitEvent(second, event));
  REQUIRE(aclrtSynchronizeStream(second) == 107019);
  turn = 1;
  REQUIRE(aclrtSynchronizeStream(first) == 107019);  // the context is broken
}

CASE(handles_are_recognised_after_their_end) {
  start();
  aclrtStream stream = new_stream();
  OK(aclrtDestroyStream(stream));
  REQUIRE(aclrtSynchronizeStream(stream) == 107017);
  REQUIRE(aclrtDestroyStream(stream) == 107017);
  REQUIRE(aclrtSynchronizeStream(&turn) == 107017);
  REQUIRE(aclemuMisuseCount() == 3 && strstr(aclemuLastMisuse(), "stream handle") != nullptr);
  REQUIRE(aclrtDestroyStream(nullptr) == 100000);  // the default stream is nobody's to destroy
}

CASE(a_stream_belongs_to_its_context) {
  start();
  aclrtStream stream = new_stream();
  aclrtContext context = nullptr, first = nullptr;
  OK(aclrtGetCurrentContext(&first));
  OK(aclrtCreateContext(&context, 0));
  REQUIRE(aclrtSynchronizeStream(stream) == 107003);
  OK(aclrtSetCurrentContext(first));
  OK(aclrtSynchronizeStream(stream));
  OK(aclrtDestroyContext(context));
  REQUIRE(aclrtSetCurrentContext(context) == 107002);
}

CASE(set_and_reset_are_counted_and_reset_ends_everything) {
  start();
  OK(aclrtSetDevice(0));
  aclrtStream stream = new_stream();
  void* memory = floats({1, 2});
  callback(stream, wait_for_turn, 1);
  callback(stream, [](void*) { turn = 5; });
  std::thread release([] { sleep_ms(30), turn = 1; });
  OK(aclrtResetDevice(0));
  REQUIRE(host(memory, 2)[1] == 2);  // one reference is left
  OK(aclrtResetDevice(0));
  REQUIRE(turn == 5);  // the stream's work was done first
  release.join();
  REQUIRE(aclrtResetDevice(0) == 107001);
  REQUIRE(aclrtSynchronizeStream(nullptr) == 107002);
  OK(aclrtSetDevice(0));
  REQUIRE(aclrtSynchronizeStream(stream) == 107017);
  float value;
  REQUIRE(aclrtMemcpy(&value, 4, memory, 4, ACL_MEMCPY_DEVICE_TO_HOST) == 107000);
  REQUIRE(aclemuLiveCount("allocations") == 0 && aclemuLiveCount("streams") == 0);
  OK(aclrtSetDevice(0));
  OK(aclrtResetDeviceForce(0));
  REQUIRE(aclrtResetDeviceForce(0) == 107001);
}

CASE(forced_destruction_drops_what_waits) {
  start();
  aclrtStream stream = new_stream(), other = new_stream();
  aclrtEvent event = new_event();
  callback(other, wait_for_turn, 1);
  OK(aclrtRecordEvent(event, other));
  OK(aclrtStreamWaitEvent(stream, event));
  callback(stream, [](void*) { turn = 100; });
  OK(aclrtDestroyStreamForce(stream));  // returns although the event never came
  REQUIRE(turn == 0);
  turn = 1;
  OK(aclrtSynchronizeStream(other));
}

CASE(visible_devices) {  // ASCEND_RT_VISIBLE_DEVICES=2,5
  uint32_t count = 0;
  int32_t id = -1;
  OK(aclrtGetDeviceCount(&count));
  REQUIRE(count == 2);
  OK(aclrtGetLogicDevIdByUserDevId(1, &id));
  REQUIRE(id == 5);
  OK(aclrtGetUserDevIdByLogicDevId(5, &id));
  REQUIRE(id == 1);
  REQUIRE(aclrtSetDevice(2) == 107001);
}

CASE(no_visible_devices) {  // ASCEND_RT_VISIBLE_DEVICES=
  uint32_t count = 9;
  OK(aclrtGetDeviceCount(&count));
  REQUIRE(count == 0);
  REQUIRE(aclrtSetDevice(0) == 107001);
}

CASE(bad_visible_devices) {  // ASCEND_RT_VISIBLE_DEVICES=3,1
  uint32_t count = 9;
  REQUIRE(aclInit(nullptr) != 0);
  REQUIRE(aclrtGetDeviceCount(&count) != 0);
  REQUIRE(message_has("must ascend"));
}

CASE(bad_soc) {  // ACLNN_EMULATOR_SOC=Ascend999
  REQUIRE(aclInit(nullptr) == 100000);
  REQUIRE(message_has("'Ascend999'; known: Ascend910B1"));
  REQUIRE(aclrtGetSocName() == nullptr);
}

int main(int argc, char** argv) { return run_named(argc, argv); }
