#include "core/context.h"

#include <array>

namespace emu {
namespace {

thread_local void* current = nullptr;

const LiveCount kCounts[] = {
    {"contexts", [] { return contexts().size(); }},
    {"streams", [] { return streams().size(); }},
    {"events", [] { return events().size(); }},
};

}  // namespace

Fault Context::fault() {
  std::lock_guard<std::mutex> hold(lock);
  return fault_;
}

void Context::fail(int code, const std::string& message) {
  std::lock_guard<std::mutex> hold(lock);
  if (fault_.code == 0) fault_ = Fault{code, message};
}

void Context::throw_if_failed() {
  Fault found = fault();
  if (found.code != 0) throw Error{found.code, found.message};
}

void Context::refuse_later(const std::string& message) {
  std::lock_guard<std::mutex> hold(lock);
  if (refusal_.empty()) refusal_ = message;
}

void Context::throw_if_refused(bool copy_follows) {
  std::string told;
  {
    std::lock_guard<std::mutex> hold(lock);
    told = refusal_;
    refused_before_copy_ = copy_follows && !refused_before_copy_ && !told.empty();
    if (!refused_before_copy_) refusal_.clear();
  }
  if (!told.empty()) throw Error{ACL_ERROR_RT_INTERNAL_ERROR, told};
}

void Context::add(const std::shared_ptr<Stream>& stream) {
  std::lock_guard<std::mutex> hold(lock);
  size_t kept = 0;  // forget the ones that are gone
  for (auto& each : streams_) {
    if (!each.expired()) streams_[kept++] = each;
  }
  streams_.resize(kept);
  streams_.push_back(stream);
}

std::vector<std::shared_ptr<Stream>> Context::streams() {
  std::lock_guard<std::mutex> hold(lock);
  std::vector<std::shared_ptr<Stream>> alive;
  for (auto& each : streams_) {
    if (auto stream = each.lock()) alive.push_back(stream);
  }
  return alive;
}

void Context::open(const std::shared_ptr<Stream>& stream) {
  add(stream);
  std::lock_guard<std::mutex> hold(lock);
  default_stream_ = stream;
}

std::shared_ptr<Stream> Context::default_stream() {
  std::lock_guard<std::mutex> hold(lock);
  if (default_stream_ == nullptr) throw Error{ACL_ERROR_RT_CONTEXT_NULL, "the thread's context was destroyed"};
  return default_stream_;
}

void Context::close(bool force) {
  for (auto& stream : streams()) stream->close(force);
  std::shared_ptr<Stream> last;  // destroyed after the lock: its end needs this context
  std::lock_guard<std::mutex> hold(lock);
  last.swap(default_stream_);
}

HandleTable<Context>& contexts() { return immortal<HandleTable<Context>>(); }
HandleTable<Stream>& streams() { return immortal<HandleTable<Stream>>(); }
HandleTable<Event>& events() { return immortal<HandleTable<Event>>(); }

std::shared_ptr<Context> make_context(int device, bool primary, void** handle) {
  auto context = std::make_shared<Context>(device, primary);
  context->open(std::make_shared<Stream>(context));
  *handle = contexts().add(context);
  return context;
}

void set_current(void* handle) { current = handle; }

void* current_handle() { return current != nullptr && contexts().find(current) != nullptr ? current : nullptr; }

std::shared_ptr<Context> current_context() {
  auto context = current == nullptr ? nullptr : contexts().find(current);
  if (context == nullptr) {
    throw Error{ACL_ERROR_RT_CONTEXT_NULL,
                "this thread has no context: call aclrtSetDevice or aclrtSetCurrentContext first"};
  }
  return context;
}

std::shared_ptr<Stream> stream_of(void* handle) {
  auto context = current_context();
  if (handle == nullptr) return context->default_stream();
  auto stream = streams().find(handle);
  if (stream == nullptr) {
    misuse(text("stream handle %p was destroyed or never was one", handle));
    throw Error{ACL_ERROR_RT_INVALID_HANDLE, text("%p is not a stream, or was destroyed", handle)};
  }
  if (stream->context() != context) {
    throw Error{ACL_ERROR_RT_STREAM_CONTEXT,
                text("stream %d belongs to another context than the thread's", stream->id)};
  }
  return stream;
}

}  // namespace emu
