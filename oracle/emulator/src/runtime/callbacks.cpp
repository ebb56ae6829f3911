// Host functions in streams: those a subscribed thread runs when it asks for them, those a thread of the runtime runs,
// and the callback that is told of a device's fault.
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <deque>

#include "acl/acl_rt.h"
#include "runtime/checks.h"

struct aclrtExceptionInfo {
  uint32_t task, stream, thread, device, code;
};

namespace {

struct Report {
  std::function<void()> run;
  std::shared_ptr<emu::Recording> done;
};

// What waits for one thread.
struct Subscriber {
  std::deque<Report> reports;
  size_t streams = 0;
};

struct Subscriptions {
  std::mutex lock;
  std::condition_variable changed;
  std::map<uint64_t, std::shared_ptr<Subscriber>> threads;
  std::map<int32_t, uint64_t> streams;  // a stream's id -> its thread
};

Subscriptions& subscriptions() { return emu::immortal<Subscriptions>(); }

std::shared_ptr<Subscriber> subscriber_of(const emu::Stream& stream) {
  Subscriptions& all = subscriptions();
  std::lock_guard<std::mutex> hold(all.lock);
  auto found = all.streams.find(stream.id);
  if (found == all.streams.end()) {
    throw emu::Error{ACL_ERROR_RT_STREAM_NO_CB_REG,
                     "no thread is subscribed to the stream's callbacks: aclrtSubscribeReport first"};
  }
  return all.threads[found->second];
}

// Hands the function to the subscribed thread; with `wait` the stream goes on when it has run.
void hand_over(const std::shared_ptr<Subscriber>& to, std::function<void()> run, emu::Stream* stream, bool wait) {
  auto done = std::make_shared<emu::Recording>();
  {
    std::lock_guard<std::mutex> hold(subscriptions().lock);
    to->reports.push_back({std::move(run), done});
    subscriptions().changed.notify_all();
  }
  if (wait) stream->wait_for(done);
}

bool take_report(int32_t timeout_ms, Report& report) {
  Subscriptions& all = subscriptions();
  std::unique_lock<std::mutex> hold(all.lock);
  auto found = all.threads.find(static_cast<uint64_t>(pthread_self()));
  if (found == all.threads.end())
    throw emu::Error{ACL_ERROR_RT_THREAD_SUBSCRIBE, "this thread is subscribed to no stream"};
  std::shared_ptr<Subscriber> mine = found->second;
  auto ready = [&] { return !mine->reports.empty(); };
  if (timeout_ms < 0)
    all.changed.wait(hold, ready);
  else if (!all.changed.wait_for(hold, std::chrono::milliseconds(timeout_ms), ready))
    return false;
  report = std::move(mine->reports.front());
  mine->reports.pop_front();
  return true;
}

std::atomic<aclrtExceptionInfoCallback> on_exception{nullptr};

void tell_exception(uint32_t task, uint32_t stream, uint32_t thread, uint32_t device, uint32_t code) {
  aclrtExceptionInfoCallback callback = on_exception;
  if (callback == nullptr) return;
  aclrtExceptionInfo info{task, stream, thread, device, code};
  callback(&info);
}

struct Register {
  Register() { emu::exception_listener = tell_exception; }
} registered;

constexpr uint32_t kNone = 0xFFFFFFFF;

}  // namespace

EMU_C aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  EMU_ENTRY {
    auto on = emu::stream_of(stream);
    Subscriptions& all = subscriptions();
    std::lock_guard<std::mutex> hold(all.lock);
    if (!all.streams.emplace(on->id, threadId).second)
      throw emu::Error{ACL_ERROR_RT_STREAM_SUBSCRIBE, "a thread is subscribed to the stream already"};
    auto& thread = all.threads[threadId];
    if (thread == nullptr) thread = std::make_shared<Subscriber>();
    thread->streams++;
  };
}

EMU_C aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  EMU_ENTRY {
    auto on = emu::stream_of(stream);
    Subscriptions& all = subscriptions();
    std::lock_guard<std::mutex> hold(all.lock);
    auto found = all.streams.find(on->id);
    if (found == all.streams.end() || found->second != threadId)
      throw emu::Error{ACL_ERROR_RT_THREAD_SUBSCRIBE, "this thread is not subscribed to the stream"};
    all.streams.erase(found);
    if (--all.threads[threadId]->streams == 0) all.threads.erase(threadId);
  };
}

EMU_C aclError aclrtProcessReport(int32_t timeout) {
  EMU_ENTRY {
    emu::require_timeout(timeout);
    Report report;
    if (!take_report(timeout, report))
      throw emu::Error{ACL_ERROR_RT_REPORT_TIMEOUT, emu::text("no callback came within %d ms", timeout)};
    report.run();
    report.done->finish();
  };
}

EMU_C aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType,
                                   aclrtStream stream) {
  EMU_ENTRY {
    if (fn == nullptr) throw emu::Error{ACL_ERROR_INVALID_PARAM, "fn is a null pointer"};
    auto on = emu::stream_of(stream);
    auto to = subscriber_of(*on);
    bool wait = blockType == ACL_CALLBACK_BLOCK;
    emu::Stream* waiting = on.get();  // outlives its own tasks
    on->submit({"host callback", false, [=] { hand_over(to, [=] { fn(userData); }, waiting, wait); }});
  };
}

EMU_C aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  EMU_ENTRY {
    if (fn == nullptr) throw emu::Error{ACL_ERROR_INVALID_PARAM, "fn is a null pointer"};
    emu::stream_of(stream)->submit({"host function", false, [=] { fn(args); }});
  };
}

EMU_C aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) EMU_DOES(on_exception = callback)
EMU_C aclError aclrtGetThreadLastTaskId(uint32_t* taskId) EMU_GIVES(taskId, emu::last_task())

EMU_C uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info) { return info ? info->task : kNone; }
EMU_C uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info) { return info ? info->stream : kNone; }
EMU_C uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info) { return info ? info->thread : kNone; }
EMU_C uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info) { return info ? info->device : kNone; }
EMU_C uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info) { return info ? info->code : kNone; }
