// The emulator's own interface.
#include "emulator/emulator.h"

#include "core/handles.h"
#include "core/trace.h"
#include "runtime/checks.h"

EMU_C aclError aclemuInject(const char* faults) {
  EMU_ENTRY {
    emu::require(faults, "faults");
    emu::inject(faults);
  };
}

EMU_C void aclemuClearFaults() { emu::clear_faults(); }

EMU_C uint64_t aclemuCallCount(const char* function) { return function == nullptr ? 0 : emu::call_count(function); }

EMU_C uint64_t aclemuLiveCount(const char* kind) { return kind == nullptr ? UINT64_MAX : emu::live_count(kind); }

EMU_C uint64_t aclemuMisuseCount() { return emu::misuse_count(); }

EMU_C const char* aclemuLastMisuse() {
  thread_local std::string shown;
  shown = emu::last_misuse();
  return shown.c_str();
}

EMU_C aclError aclemuTrace(const char* path) {
  EMU_ENTRY {
    if (!emu::trace_to(path)) throw emu::Error{ACL_ERROR_INVALID_PARAM, emu::text("cannot write %s", path)};
  };
}
