// Errors: a status code with the message that aclGetRecentErrMsg shows.
#pragma once

#include <string>

#include "acl/acl_base.h"

#define EMU_PUBLIC __attribute__((visibility("default")))
#define EMU_C extern "C" EMU_PUBLIC

namespace emu {

// The one object of a type, made when first asked for and never destroyed: threads may outlive static destructors.
template <class T>
T& immortal() {
  static T& one = *new T;
  return one;
}

struct EMU_PUBLIC Error {
  int code;
  std::string message;
};

// printf into a string.
EMU_PUBLIC std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Appends to the calling thread's messages, with the tag CANN gives errors of this code (EZ1001, EE1001 ...).
EMU_PUBLIC void say(int code, const std::string& message);

// The thread's messages, newest first, older ones behind them as in the real runtime; null if there never was one.
const char* recent_messages();

// Notes a use that is a mistake although CANN would not refuse it.
EMU_PUBLIC void misuse(const std::string& what);
// Notes one that CANN refuses, and throws.
[[noreturn]] EMU_PUBLIC void misused(int code, const std::string& what);
unsigned long misuse_count();
std::string last_misuse();

}  // namespace emu
