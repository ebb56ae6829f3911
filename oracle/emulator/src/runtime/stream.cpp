// Streams: creation, destruction, synchronisation.
#include "acl/acl_rt.h"
#include "runtime/checks.h"

namespace {

void create_stream(aclrtStream* stream, uint32_t priority = 0, uint32_t flags = 0) {
  emu::require(stream, "stream");
  auto context = emu::current_context();
  auto made = std::make_shared<emu::Stream>(context);
  made->priority = priority, made->flags = flags;
  context->add(made);
  *stream = emu::streams().add(made);
}

void destroy_stream(aclrtStream handle, bool force) {
  emu::require(handle, "stream");  // the default stream ends with its context
  auto stream = emu::stream_of(handle);
  emu::streams().remove(handle);
  stream->close(force);
}

void synchronize(aclrtStream handle, long timeout_ms, bool copy_follows) {
  auto stream = emu::stream_of(handle);
  if (!stream->synchronize(timeout_ms)) {
    throw emu::Error{ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                     emu::text("stream %d did not finish within %ld ms", stream->id, timeout_ms)};
  }
  stream->context()->throw_if_refused(copy_follows);
  stream->context()->throw_if_failed();
}

}  // namespace

EMU_C aclError aclrtCreateStream(aclrtStream* stream) EMU_DOES(create_stream(stream))

EMU_C aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag)
EMU_DOES(create_stream(stream, priority, flag))

EMU_C aclError aclrtDestroyStream(aclrtStream stream) EMU_DOES(destroy_stream(stream, false))
EMU_C aclError aclrtDestroyStreamForce(aclrtStream stream) EMU_DOES(destroy_stream(stream, true))
EMU_C aclError aclrtSynchronizeStream(aclrtStream stream) EMU_DOES(synchronize(stream, -1, true))

EMU_C aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  EMU_ENTRY {
    emu::require_timeout(timeout);
    synchronize(stream, timeout, false);
  };
}

EMU_C aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  EMU_ENTRY {
    emu::require(status, "status");
    auto found = emu::stream_of(stream);
    found->context()->throw_if_failed();
    *status = found->idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  };
}

EMU_C aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) EMU_GIVES(streamId, emu::stream_of(stream)->id)

EMU_C aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority)
EMU_GIVES(priority, emu::stream_of(stream)->priority)

EMU_C aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) EMU_GIVES(flags, emu::stream_of(stream)->flags)

// Both times are in seconds; 0 is no limit.
EMU_C aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) EMU_DOES(emu::op_timeout_ms = 1000L * timeout)
EMU_C aclError aclrtSetOpWaitTimeout(uint32_t timeout) EMU_DOES(emu::wait_timeout_ms = 1000L * timeout)

// Noted only: here a context stops after its first fault in either mode.
EMU_C aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  EMU_ENTRY {
    emu::require(stream, "stream");
    emu::stream_of(stream);
    if (mode > 1) throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, emu::text("mode is %lu; it must be 0 or 1", mode)};
  };
}

EMU_C aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority, int32_t* greatestPriority) {
  EMU_ENTRY {
    emu::require(leastPriority, "leastPriority");
    emu::require(greatestPriority, "greatestPriority");
    emu::current_context();
    *leastPriority = 7, *greatestPriority = 0;
  };
}

// Overflow detection is a switch of saturating SoCs; the emulated kernels saturate silently either way.
EMU_C aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag)
EMU_DOES(emu::stream_of(stream)->overflow_switch = flag)

EMU_C aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag)
EMU_GIVES(flag, emu::stream_of(stream)->overflow_switch)
