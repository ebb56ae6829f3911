// Checks that most runtime functions begin with.
#pragma once

#include "core/context.h"
#include "core/entry.h"

namespace emu {

inline void require(const void* pointer, const char* parameter) {
  if (pointer == nullptr) throw Error{ACL_ERROR_INVALID_PARAM, text("%s is a null pointer", parameter)};
}

// Timeouts: -1 waits for ever, 0 and less are refused.
inline void require_timeout(int32_t timeout) {
  if (timeout < -1 || timeout == 0)
    throw Error{ACL_ERROR_RT_PARAM_INVALID, text("timeout is %d; it must be -1 or > 0 ms", timeout)};
}

}  // namespace emu

// The body of a function that gives one value to an out-parameter.
#define EMU_GIVES(out, ...) EMU_DOES(emu::require(out, #out); *out = __VA_ARGS__)

// A function that accepts everything and does nothing.
#define EMU_NOTHING(name) EMU_C int name() EMU_DOES()
