// Events. One that was never recorded counts as complete and nobody waits for it.
#include "acl/acl_rt.h"
#include "runtime/checks.h"

namespace {

std::shared_ptr<emu::Event> event_of(aclrtEvent handle) {
  auto event = emu::events().find(handle);
  if (event == nullptr)
    throw emu::Error{ACL_ERROR_RT_INVALID_HANDLE, emu::text("%p is not an event, or was destroyed", handle)};
  return event;
}

std::shared_ptr<emu::Recording> latest(aclrtEvent handle) {
  auto event = event_of(handle);
  std::lock_guard<std::mutex> hold(event->lock);
  return event->latest;
}

void create_event(aclrtEvent* event, uint32_t flags) {
  emu::require(event, "event");
  emu::current_context();
  *event = emu::events().add(std::make_shared<emu::Event>(flags));
}

void synchronize_event(aclrtEvent handle, long timeout_ms) {
  auto recording = latest(handle);
  if (recording != nullptr && !recording->wait(timeout_ms)) {
    throw emu::Error{ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, emu::text("the event did not come within %ld ms", timeout_ms)};
  }
  emu::current_context()->throw_if_refused();
  emu::current_context()->throw_if_failed();
}

}  // namespace

EMU_C aclError aclrtCreateEvent(aclrtEvent* event) EMU_DOES(create_event(event, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE))
EMU_C aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) EMU_DOES(create_event(event, flag))
EMU_C aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) EMU_DOES(create_event(event, flag))

EMU_C aclError aclrtDestroyEvent(aclrtEvent event) {
  EMU_ENTRY {
    emu::require(event, "event");
    event_of(event);
    emu::events().remove(event);
  };
}

EMU_C aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  EMU_ENTRY {
    auto found = event_of(event);
    auto on = emu::stream_of(stream);
    auto recording = std::make_shared<emu::Recording>();
    std::lock_guard<std::mutex> hold(found->lock);
    on->submit({"record event", true, [recording] { recording->finish(); }});
    found->latest = recording;
  };
}

EMU_C aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  EMU_ENTRY {
    auto found = event_of(event);
    emu::stream_of(stream)->submit({"reset event", true, [found] {
                                      std::lock_guard<std::mutex> hold(found->lock);
                                      found->latest = nullptr;
                                    }});
  };
}

EMU_C aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  EMU_ENTRY {
    auto found = event_of(event);
    auto on = emu::stream_of(stream);
    std::lock_guard<std::mutex> hold(found->lock);
    if (found->latest == nullptr) return;
    auto recording = found->latest;
    auto over = std::make_shared<emu::Recording>();
    emu::Stream* waiting = on.get();  // outlives its own tasks
    on->submit({"wait for event", true, [=] {
                  struct Finish {
                    std::shared_ptr<emu::Recording> over;
                    ~Finish() { over->finish(); }
                  } finish{over};
                  waiting->wait_for(recording);
                }});
    found->last_wait = over;
  };
}

EMU_C aclError aclrtSynchronizeEvent(aclrtEvent event) EMU_DOES(synchronize_event(event, -1))

EMU_C aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  EMU_ENTRY {
    emu::require_timeout(timeout);
    synchronize_event(event, timeout);
  };
}

EMU_C aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  EMU_ENTRY {
    emu::require(status, "status");
    auto recording = latest(event);
    bool complete = recording == nullptr || recording->done();
    *status = complete ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  };
}

EMU_C aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  EMU_ENTRY {
    emu::require(status, "status");
    auto found = event_of(event);
    std::lock_guard<std::mutex> hold(found->lock);
    auto over = found->last_wait.lock();
    *status = over == nullptr || over->done() ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
  };
}

EMU_C aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  EMU_ENTRY {
    emu::require(status, "status");
    auto recording = latest(event);
    *status = recording == nullptr || recording->done() ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
  };
}

// Microseconds since the machine started.
EMU_C aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  EMU_ENTRY {
    emu::require(timestamp, "timestamp");
    auto recording = latest(event);
    if (recording == nullptr || !recording->done())
      throw emu::Error{ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event was not recorded, or is not complete"};
    auto since = recording->time().time_since_epoch();
    *timestamp = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
  };
}

EMU_C aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  EMU_ENTRY {
    emu::require(ms, "ms");
    auto start = latest(startEvent), end = latest(endEvent);
    if (start == nullptr || end == nullptr || !start->done() || !end->done()) {
      throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, "both events must have been recorded and be complete"};
    }
    *ms = std::chrono::duration<float, std::milli>(end->time() - start->time()).count();
  };
}
