// Operators that are not served say so: without these functions torch_npu would take the older interface instead, which
// fails later, in another thread, without the operator's name.
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "aclnn/acl_meta.h"
#include "core/entry.h"

namespace {

constexpr int kFrames = 256;
constexpr const char* kPrefix = "_ZN2at4_ops";  // at::_ops::NAME::call, one for each aten function

// The aten function that PyTorch was asked for, from the stack: the outermost one; "" where there is none (a program
// without PyTorch, or torch_npu's queue has another thread call).
std::string aten_caller() {
  void* frames[kFrames];
  int count = backtrace(frames, kFrames);
  std::string found;
  for (int i = 0; i < count; i++) {
    Dl_info info;
    if (dladdr(frames[i], &info) == 0 || info.dli_sname == nullptr) continue;
    if (strncmp(info.dli_sname, kPrefix, strlen(kPrefix)) != 0) continue;
    char* name = nullptr;
    unsigned long length = strtoul(info.dli_sname + strlen(kPrefix), &name, 10);
    if (length > 0 && length <= strlen(name)) found.assign(name, length);
  }
  return found;
}

[[noreturn]] void refuse(const char* api) {
  std::string caller = aten_caller();
  throw emu::Error{ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
                   "this is the emulated CANN, no NPU, and it does not serve " + std::string(api) +
                       (caller.empty() ? "" : " (for aten::" + caller + ")") +
                       ": it has the suite's operators and what torch_npu needs around them. docs/emulator.md lists "
                       "what is served. Nothing was run."};
}

int unserved(const char* api) {
  static auto& lock = *new std::mutex;
  static auto& entries = *new std::map<std::string, emu::Entry>;
  emu::Entry* entry = nullptr;
  {
    std::lock_guard<std::mutex> hold(lock);
    entry = &entries.try_emplace(api, api).first->second;
  }
  return (*entry)([&] { refuse(api); });
}

}  // namespace

#define EMU_UNSERVED(api)                                                       \
  EMU_C aclnnStatus api##GetWorkspaceSize() { return unserved(#api); }          \
  EMU_C aclnnStatus api() { return unserved(#api); }
#include "unserved_names.inc"  // written by the build: names.txt without what the sources serve
