#include "core/entry.h"

#include <map>
#include <mutex>
#include <new>

#include "core/trace.h"

namespace emu {
namespace {

struct Registry {
  std::mutex lock;
  std::map<std::string, Entry*> entries;
};

Registry& registry() { return immortal<Registry>(); }

thread_local int last_failure = 0;
thread_local Injection injected;

// Runs the body and turns what it throws into a status and a message.
int status_of(const std::string& name, void (*call)(void*), void* body) {
  try {
    injected = injection_for(name.c_str());
    if (injected.code != 0) throw Error{injected.code, "injected fault"};
    if (!injected.returns) call(body);
    return ACL_SUCCESS;
  } catch (const Error& error) {
    if (!error.message.empty()) say(error.code, "[" + name + "] " + error.message);  // some refusals have no words
    return error.code;
  } catch (const std::exception& error) {  // no memory, a length that no memory has, no thread
    say(ACL_ERROR_BAD_ALLOC, "[" + name + "] the host cannot do this: " + error.what());
    return ACL_ERROR_BAD_ALLOC;
  }
}

}  // namespace

Entry::Entry(const char* function) : name(function) {
  std::lock_guard<std::mutex> hold(registry().lock);
  registry().entries[name] = this;
}

int Entry::run(void (*call)(void*), void* body) {
  calls_++;
  int code = status_of(name, call, body);
  if (code != ACL_SUCCESS) last_failure = code;
  if (tracing()) trace_line(name + "(" + take_trace_arguments() + ") -> " + std::to_string(code));
  return code;
}

Injection Entry::current_injection() { return injected; }

unsigned long call_count(const char* name) {
  std::lock_guard<std::mutex> hold(registry().lock);
  auto found = registry().entries.find(name);
  return found == registry().entries.end() ? 0 : found->second->calls_.load();
}

int last_error(bool clear) {
  int code = last_failure;
  if (clear) last_failure = 0;
  return code;
}

}  // namespace emu
