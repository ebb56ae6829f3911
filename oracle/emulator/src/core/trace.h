// The call trace: one line a call and one a kernel run, in a file. Off unless asked for.
#pragma once

#include <atomic>
#include <string>

#include "core/error.h"

namespace emu {

EMU_PUBLIC bool tracing();
EMU_PUBLIC void trace_line(const std::string& line);
// What the calling thread's current call was given; its trace line shows it.
EMU_PUBLIC void trace_arguments(std::string arguments);
std::string take_trace_arguments();
// Writes to `path` from now on, null stops; false if the file cannot be opened.
bool trace_to(const char* path);
// The file that the environment names, if it could not be opened.
std::string unwritable_trace();

}  // namespace emu
