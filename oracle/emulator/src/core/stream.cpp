#include "core/stream.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "core/context.h"
#include "core/settings.h"

namespace emu {

std::atomic<long> op_timeout_ms{-1}, wait_timeout_ms{0};
void (*exception_listener)(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t) = nullptr;

namespace {

constexpr long kOpTimeoutMs = 547000;  // what torch_npu sets

std::atomic<int32_t> next_stream_id{1};
std::atomic<uint32_t> next_task_id{1};
thread_local uint32_t last_task_id = 0;

template <class Predicate>
bool wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, long timeout_ms,
                Predicate ready) {
  if (timeout_ms < 0) {
    changed.wait(lock, ready);
    return true;
  }
  return changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), ready);
}

}  // namespace

uint32_t last_task() { return last_task_id; }

void Recording::finish() {
  std::lock_guard<std::mutex> hold(lock_);
  done_ = true;
  time_ = Clock::now();
  changed_.notify_all();
}

bool Recording::done() {
  std::lock_guard<std::mutex> hold(lock_);
  return done_;
}

bool Recording::wait(long timeout_ms, const std::atomic<bool>* stop) {
  std::unique_lock<std::mutex> hold(lock_);
  return wait_until(changed_, hold, timeout_ms, [&] { return done_ || (stop != nullptr && *stop); });
}

void Recording::notify() {
  std::lock_guard<std::mutex> hold(lock_);
  changed_.notify_all();
}

Clock::time_point Recording::time() {
  std::lock_guard<std::mutex> hold(lock_);
  return time_;
}

Stream::Stream(std::shared_ptr<Context> context) : id(next_stream_id++), context_(std::move(context)) {}

Stream::~Stream() { close(true); }

void Stream::submit(Task task) {
  task.id = last_task_id = next_task_id++;
  task.thread = static_cast<uint32_t>(syscall(SYS_gettid));
  std::lock_guard<std::mutex> hold(lock_);
  if (closing_) throw Error{ACL_ERROR_RT_INVALID_HANDLE, "the stream is being destroyed"};
  if (!worker_.joinable()) worker_ = std::thread([this] { work(); });
  queue_.push_back(std::move(task));
  submitted_++;
  changed_.notify_all();
}

void Stream::work() {
  std::unique_lock<std::mutex> hold(lock_);
  while (true) {
    changed_.wait(hold, [&] { return !queue_.empty() || closing_; });
    if (queue_.empty()) return;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    hold.unlock();
    perform(task);
    task = Task();  // what the task holds is gone before anyone learns that it is done
    hold.lock();
    completed_++;
    changed_.notify_all();
  }
}

void Stream::perform(Task& task) {
  if (!task.control && (aborted_ || context_->fault().code != 0)) return;
  try {
    task.run();
  } catch (const Error& error) {
    if (aborted_) return;
    context_->fail(error.code, text("stream %d, %s: %s", id, task.name.c_str(), error.message.c_str()));
    if (exception_listener != nullptr)
      exception_listener(task.id, static_cast<uint32_t>(id), task.thread, static_cast<uint32_t>(context_->device),
                         static_cast<uint32_t>(error.code));
  } catch (const std::exception& error) {  // no memory, a length that no memory has
    context_->fail(ACL_ERROR_RT_INTERNAL_ERROR,
                   text("stream %d, %s: the host cannot do this: %s", id, task.name.c_str(), error.what()));
  }
}

bool Stream::synchronize(long timeout_ms) {
  std::unique_lock<std::mutex> hold(lock_);
  uint64_t target = submitted_;
  return wait_until(changed_, hold, timeout_ms, [&] { return completed_ >= target; });
}

bool Stream::idle() {
  std::lock_guard<std::mutex> hold(lock_);
  return completed_ == submitted_;
}

void Stream::close(bool force) {
  std::thread worker;
  {
    std::lock_guard<std::mutex> hold(lock_);
    closing_ = true;
    if (force) {
      aborted_ = true;
      if (waiting_for_ != nullptr) waiting_for_->notify();
    }
    worker.swap(worker_);
    changed_.notify_all();
  }
  if (worker.joinable()) worker.join();
}

void Stream::pause(long us) {
  if (us == 0) return;
  std::unique_lock<std::mutex> hold(lock_);
  changed_.wait_for(hold, std::chrono::microseconds(us), [&] { return aborted_.load(); });
}

void Stream::hang() {
  long limit = setting("ACLNN_EMULATOR_OP_TIMEOUT_MS", op_timeout_ms >= 0 ? op_timeout_ms.load() : kOpTimeoutMs);
  std::unique_lock<std::mutex> hold(lock_);
  wait_until(changed_, hold, limit == 0 ? -1 : limit, [&] { return aborted_.load(); });
  throw Error{ACL_ERROR_RT_AICORE_TIMEOUT, text("the kernel did not end within %ld ms", limit)};
}

void Stream::wait_for(const std::shared_ptr<Recording>& recording) {
  {
    std::lock_guard<std::mutex> hold(lock_);
    waiting_for_ = recording;
  }
  long limit = wait_timeout_ms;
  bool in_time = recording->wait(limit == 0 ? -1 : limit, &aborted_);
  {
    std::lock_guard<std::mutex> hold(lock_);
    waiting_for_ = nullptr;
  }
  if (!in_time) throw Error{ACL_ERROR_RT_WAIT_TIMEOUT, text("the event did not come within %ld ms", limit)};
}

}  // namespace emu
