// What the environment asks for (ACLNN_EMULATOR_*), read once.
#pragma once

#include <cstddef>

#include "core/error.h"

namespace emu {

// A whole number from the environment, or `otherwise`; throws Error for anything else.
EMU_PUBLIC long setting(const char* name, long otherwise, long most = 1'000'000'000);

// Throws Error for a variable ACLNN_EMULATOR_* that nobody reads, and for one that cannot be right.
void check_settings();

}  // namespace emu
