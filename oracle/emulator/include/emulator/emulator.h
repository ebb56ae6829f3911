// The emulator's own interface, for tests of programs that call CANN: faults to order, counters, what is alive.
// A real CANN does not have it. docs/emulator.md is the reference.
#ifndef ACLNN_EMULATOR_H
#define ACLNN_EMULATOR_H

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

// Adds faults ("aclrtMalloc#2=207001; aclnnSoftmaxBackward=hang"); 100000 and a message if the text is wrong.
ACL_FUNC_VISIBILITY aclError aclemuInject(const char* faults);
ACL_FUNC_VISIBILITY void aclemuClearFaults();
// How often the named API function was called (refused and failed calls count too).
ACL_FUNC_VISIBILITY uint64_t aclemuCallCount(const char* function);
// How many objects of a kind are alive: tensors, scalars, arrays, lists, executors, contexts, streams, events,
// allocations, host_allocations; "bytes" is the device memory allocated. UINT64_MAX for another word.
ACL_FUNC_VISIBILITY uint64_t aclemuLiveCount(const char* kind);
// Uses that are mistakes although CANN would not refuse them (a destroyed handle, memory written past its end ...).
ACL_FUNC_VISIBILITY uint64_t aclemuMisuseCount();
// The last of them, "" if none; valid until the next call on this thread.
ACL_FUNC_VISIBILITY const char* aclemuLastMisuse();
// Writes every call and kernel run to the file from now on; null stops.
ACL_FUNC_VISIBILITY aclError aclemuTrace(const char* path);

// The checks of operators from outside (libnnopbase.so). `call` is JSON: the operator, the SoC, and every argument by its
// name. The function answers the status, writes a refusal's words into `message` (`room` bytes with the closing 0), and
// sets `runs` to 0 where a call succeeds without a kernel. It is called on the thread that called the first phase.
typedef int32_t (*aclemuChecks)(const char* call, char* message, size_t room, int32_t* runs);
ACL_FUNC_VISIBILITY void aclemuSetChecks(aclemuChecks checks);

#ifdef __cplusplus
}
#endif

#endif
