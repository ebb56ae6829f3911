// Streams: a queue and a worker thread each. Events: recordings in a stream that others wait for.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/error.h"

namespace emu {

class Context;
using Clock = std::chrono::steady_clock;

// One recording of an event; done when the stream has reached it.
class Recording {
 public:
  void finish();
  bool done();
  // Waits until done, or until `stop` is set and notify() was called; false if the time (milliseconds, -1: none) ran
  // out.
  bool wait(long timeout_ms, const std::atomic<bool>* stop = nullptr);
  void notify();
  Clock::time_point time();

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  bool done_ = false;
  Clock::time_point time_;
};

struct Task {
  std::string name;
  bool control;               // runs although the context has failed: event records and waits
  std::function<void()> run;  // throws Error: a fault of the device
  uint32_t id = 0;            // set by submit: the how-manieth task of the process
  uint32_t thread = 0;        // set by submit: the system's id of the thread that submitted it
};

class EMU_PUBLIC Stream {
 public:
  explicit Stream(std::shared_ptr<Context> context);
  ~Stream();

  void submit(Task task);
  // Waits for what was submitted before; false if the time (milliseconds, -1: none) ran out.
  bool synchronize(long timeout_ms);
  bool idle();
  // Ends the worker; by force: waiting tasks are dropped and a hanging kernel is aborted.
  void close(bool force);

  // A kernel takes so long (microseconds), or until the stream is closed by force.
  void pause(long us);
  // A kernel that never ends: returns by an Error when the operator's time is over or the stream is closed by force.
  [[noreturn]] void hang();
  // Lets the stream wait for a recording; throws Error when the waiting time is over.
  void wait_for(const std::shared_ptr<Recording>& recording);

  const int32_t id;
  std::atomic<uint32_t> overflow_switch{0};  // aclrtSetStreamOverflowSwitch
  uint32_t priority = 0, flags = 0;          // as created; without effect
  const std::shared_ptr<Context>& context() const { return context_; }

 private:
  void work();
  void perform(Task& task);

  const std::shared_ptr<Context> context_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Task> queue_;
  std::shared_ptr<Recording> waiting_for_;
  uint64_t submitted_ = 0, completed_ = 0;
  bool closing_ = false;
  std::atomic<bool> aborted_{false};
  std::thread worker_;  // started by the first task
};

// The task that the calling thread submitted last; 0 for none.
uint32_t last_task();
// Called for a faulted task: its id, its stream's, thread's and device's, and the code. Set when the library loads.
extern void (*exception_listener)(uint32_t task, uint32_t stream, uint32_t thread, uint32_t device, uint32_t code);

// How long a kernel and an event wait may take, in milliseconds; 0: for ever.
extern std::atomic<long> op_timeout_ms, wait_timeout_ms;

}  // namespace emu
