// aclInit and aclFinalize: counted, once per process.
#include <cstdio>

#include "core/settings.h"
#include "core/soc.h"
#include "runtime/checks.h"

namespace {

struct Process {
  std::mutex lock;
  uint64_t references = 0;
  bool finalized = false;
  std::string config;
};

Process& process() { return emu::immortal<Process>(); }

// With ACLNN_EMULATOR_LEAKS=1: one line on stderr for what is alive when a program finalises.
void report_leaks() {
  if (emu::setting("ACLNN_EMULATOR_LEAKS", 0) != 1) return;
  for (const char* kind :
       {"tensors", "scalars", "arrays", "lists", "executors", "streams", "events", "allocations", "host_allocations"}) {
    uint64_t alive = emu::live_count(kind);
    if (alive != 0 && alive != UINT64_MAX) fprintf(stderr, "emulated CANN: %lu %s alive at aclFinalize\n", alive, kind);
  }
}

}  // namespace

EMU_C aclError aclInit(const char* configPath) {
  EMU_ENTRY {
    emu::check_settings();
    emu::soc();
    emu::follows("8.5");  // refuses a version that it does not know
    emu::visible_devices();
    Process& p = process();
    std::lock_guard<std::mutex> hold(p.lock);
    std::string config = configPath == nullptr ? "" : configPath;
    if (p.references > 0) {
      if (config != p.config)
        throw emu::Error{ACL_ERROR_INVALID_PARAM, "aclInit again with another configuration file"};
      p.references++;
      throw emu::Error{ACL_ERROR_REPEAT_INITIALIZE, "aclInit was called before"};
    }
    p.references = 1;
    p.finalized = false;
    p.config = config;
  };
}

static void drop_reference(uint64_t* left, bool all) {
  Process& p = process();
  std::lock_guard<std::mutex> hold(p.lock);
  if (p.references == 0) {
    throw emu::Error{p.finalized ? ACL_ERROR_REPEAT_FINALIZE : ACL_ERROR_UNINITIALIZE,
                     p.finalized ? "finalised before" : "aclInit was not called"};
  }
  p.references = all ? 0 : p.references - 1;
  if (left != nullptr) *left = p.references;
  if (p.references > 0) return;
  p.finalized = true;
  report_leaks();
}

EMU_C aclError aclFinalize() EMU_DOES(drop_reference(nullptr, true))
EMU_C aclError aclFinalizeReference(uint64_t* refCount) EMU_DOES(drop_reference(refCount, false))
