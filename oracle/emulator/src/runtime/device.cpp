// Devices and contexts of the calling thread.
#include "acl/acl_rt.h"
#include "runtime/checks.h"

namespace {

void synchronize_device(long timeout_ms) {
  auto context = emu::current_context();
  auto deadline = emu::Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (auto& stream : context->streams()) {
    long left =
        timeout_ms < 0
            ? -1
            : std::max<long>(
                  0, std::chrono::duration_cast<std::chrono::milliseconds>(deadline - emu::Clock::now()).count());
    if (!stream->synchronize(left)) {
      throw emu::Error{ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                       emu::text("the device did not finish within %ld ms", timeout_ms)};
    }
  }
  context->throw_if_refused();
  context->throw_if_failed();
}

}  // namespace

EMU_C aclError aclrtGetDeviceCount(uint32_t* count)
EMU_GIVES(count, static_cast<uint32_t>(emu::visible_devices().size()))

EMU_C aclError aclrtSetDevice(int32_t deviceId) EMU_DOES(emu::set_device(deviceId))

EMU_C aclError aclrtGetDevice(int32_t* deviceId) {
  EMU_ENTRY {
    emu::require(deviceId, "deviceId");
    if (emu::current_handle() == nullptr) throw emu::Error{ACL_ERROR_RT_CONTEXT_NULL, ""};  // a question, no mistake
    *deviceId = emu::current_context()->device;
  };
}

EMU_C aclError aclrtResetDevice(int32_t deviceId) EMU_DOES(emu::reset_device(deviceId, false))
EMU_C aclError aclrtResetDeviceForce(int32_t deviceId) EMU_DOES(emu::reset_device(deviceId, true))
EMU_C aclError aclrtSynchronizeDevice(void) EMU_DOES(synchronize_device(-1))

EMU_C aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  EMU_ENTRY {
    emu::require_timeout(timeout);
    synchronize_device(timeout);
  };
}

// A logical id is the process's own, a user id the same; the physical one is the machine's.
EMU_C aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t* const logicDevId) {
  EMU_ENTRY {
    emu::require(logicDevId, "logicDevId");
    emu::require_device(userDevid);
    *logicDevId = emu::visible_devices()[static_cast<size_t>(userDevid)];
  };
}

EMU_C aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t* const userDevid) {
  EMU_ENTRY {
    emu::require(userDevid, "userDevid");
    const auto& ids = emu::visible_devices();
    for (size_t i = 0; i < ids.size(); i++) {
      if (ids[i] == logicDevId) return static_cast<void>(*userDevid = static_cast<int32_t>(i));
    }
    throw emu::Error{ACL_ERROR_RT_INVALID_DEVICEID, emu::text("device %d is not visible", logicDevId)};
  };
}

EMU_C aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t* const phyDevId)
EMU_GIVES(phyDevId, logicDevId)

EMU_C aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
  EMU_ENTRY {
    emu::require(canAccessPeer, "canAccessPeer");
    emu::require_device(deviceId);
    emu::require_device(peerDeviceId);
    *canAccessPeer = deviceId != peerDeviceId;
  };
}

EMU_C aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t) EMU_DOES(emu::require_device(peerDeviceId))
EMU_C aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) EMU_DOES(emu::require_device(peerDeviceId))

EMU_C aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  EMU_ENTRY {
    emu::require(context, "context");
    emu::require_device(deviceId);
    emu::make_context(deviceId, false, context);
    emu::set_current(*context);
  };
}

EMU_C aclError aclrtDestroyContext(aclrtContext context) {
  EMU_ENTRY {
    auto found = emu::contexts().find(context);
    if (found == nullptr) throw emu::Error{ACL_ERROR_RT_INVALID_HANDLE, emu::text("%p is not a context", context)};
    if (found->primary) throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, "the default context ends with aclrtResetDevice"};
    emu::contexts().remove(context);
    found->close(true);
    emu::streams().remove_if([&](emu::Stream& stream) { return stream.context() == found; });
  };
}

EMU_C aclError aclrtSetCurrentContext(aclrtContext context) {
  EMU_ENTRY {
    emu::require(context, "context");
    if (emu::contexts().find(context) == nullptr) {
      throw emu::Error{ACL_ERROR_RT_CONTEXT_NULL, emu::text("%p is not a context, or was destroyed", context)};
    }
    emu::set_current(context);
  };
}

EMU_C aclError aclrtGetCurrentContext(aclrtContext* context) {
  EMU_ENTRY {
    emu::require(context, "context");
    emu::current_context();
    *context = emu::current_handle();
  };
}

// flags is reserved.
EMU_C aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
  EMU_ENTRY {
    emu::require(active, "active");
    *active = emu::has_primary_context(deviceId) ? 1 : 0;
    if (flags != nullptr) *flags = 0;
  };
}

EMU_C aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  EMU_ENTRY {
    emu::require(stream, "stream");
    emu::current_context();
    *stream = nullptr;  // the null stream is the context's default one in every function
  };
}
