// The prologue of every exported function: counted, traced, open to injected faults, no exception leaves it.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/faults.h"

namespace emu {

// One exported function: it runs a body, which throws Error to fail, and returns the status.
class EMU_PUBLIC Entry {
 public:
  explicit Entry(const char* name);

  template <class Body>
  int operator()(Body&& body) {
    return run([](void* b) { (*static_cast<std::remove_reference_t<Body>*>(b))(); },
               const_cast<void*>(static_cast<const void*>(&body)));
  }
  template <class Body>
  int operator<<(Body&& body) {
    return (*this)(std::forward<Body>(body));
  }

  // Runs a body that returns a value; gives an empty one where the body throws.
  template <class Body>
  auto value(Body&& body) {
    decltype(body()) given{};
    (*this)([&] { given = body(); });
    return given;
  }

  // The kernel action injected for the call that is running on this thread ("" for none).
  static Injection current_injection();

  const std::string name;

 private:
  int run(void (*call)(void*), void* body);
  std::atomic<unsigned long> calls_{0};
  friend unsigned long call_count(const char* name);
};

unsigned long call_count(const char* name);
// The last failure of the calling thread; `clear` forgets it.
int last_error(bool clear);

}  // namespace emu

// The body of a function that returns its status: EMU_C aclError aclrtFree(void* devPtr) { EMU_ENTRY { ... }; }
#define EMU_ENTRY                    \
  static emu::Entry entry(__func__); \
  return entry << [&]()

// The same for a function that does one thing: EMU_C aclError aclrtSetDevice(int32_t deviceId) EMU_DOES(...)
#define EMU_DOES(...)           \
  {                             \
    EMU_ENTRY { __VA_ARGS__; }; \
  }
