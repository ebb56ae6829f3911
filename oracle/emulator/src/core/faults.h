// Fault injection: NAME[#WHEN]=ACTION, several separated by ';'. docs/emulator.md is the reference.
#pragma once

#include <string>

#include "core/error.h"

namespace emu {

// What is to go wrong with one call: it returns the code and does nothing, or the kernel that it starts is altered.
struct Injection {
  bool returns = false;
  int code = 0;
  std::string action;  // wrong, zeros, nan, stale, overrun, underrun, input, fault, hang, crash, slow; "" for none
  long argument = 0;   // the code of "fault", the milliseconds of "slow"
};

void inject(const std::string& faults);  // throws Error for text it does not understand
void clear_faults();
// The injection for this call of a function, which counts as one of its calls. Cheap while nothing is injected.
EMU_PUBLIC Injection injection_for(const char* function);

}  // namespace emu
