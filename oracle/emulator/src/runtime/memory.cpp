// Device memory, pinned host memory, and what can be asked of an address.
#include "runtime/memory.h"

#include <unistd.h>

#include <cstdlib>

#include "acl/acl_rt.h"
#include "runtime/checks.h"

namespace {

struct HostBlocks {
  std::mutex lock;
  std::map<uintptr_t, size_t> blocks;      // start -> bytes that aclrtMallocHost gave
  std::map<uintptr_t, size_t> registered;  // the program's own, by aclrtHostRegister

  static bool within(const std::map<uintptr_t, size_t>& blocks, uintptr_t a) {
    auto after = blocks.upper_bound(a);
    return after != blocks.begin() && a < std::prev(after)->first + std::prev(after)->second;
  }
};

HostBlocks& pinned() { return emu::immortal<HostBlocks>(); }

size_t pinned_count() {
  std::lock_guard<std::mutex> hold(pinned().lock);
  return pinned().blocks.size();
}

const emu::LiveCount kCount("host_allocations", pinned_count);

void allocate(void** devPtr, size_t size, size_t padding) {
  emu::require(devPtr, "devPtr");
  if (size == 0) throw emu::Error{ACL_ERROR_INVALID_PARAM, "size is 0"};
  if (size > SIZE_MAX - 64) throw emu::Error{ACL_ERROR_RT_MEMORY_ALLOCATION, emu::text("size is %zu", size)};
  *devPtr = emu::memory_of(emu::current_context()->device).allocate(size, (size + padding) / 32 * 32);
}

}  // namespace

bool emu::is_pinned(const void* address) {
  std::lock_guard<std::mutex> hold(pinned().lock);
  uintptr_t a = reinterpret_cast<uintptr_t>(address);
  return HostBlocks::within(pinned().blocks, a) || HostBlocks::within(pinned().registered, a);
}

EMU_C aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) EMU_DOES(allocate(devPtr, size, 63))
EMU_C aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy) EMU_DOES(allocate(devPtr, size, 63))
EMU_C aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy) EMU_DOES(allocate(devPtr, size, 31))

EMU_C aclError aclrtFree(void* devPtr) {
  EMU_ENTRY {
    emu::require(devPtr, "devPtr");
    emu::current_context();
    int device = emu::device_of(devPtr);
    if (device == -1) {
      emu::misuse(emu::text("aclrtFree of %p, which is not device memory", devPtr));
      throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, emu::text("%p is not device memory", devPtr)};
    }
    emu::memory_of(device).release(devPtr);
  };
}

EMU_C aclError aclrtMallocHost(void** hostPtr, size_t size) {
  EMU_ENTRY {
    emu::require(hostPtr, "hostPtr");
    if (size == 0) throw emu::Error{ACL_ERROR_INVALID_PARAM, "size is 0"};
    emu::current_context();
    void* made = nullptr;
    if (posix_memalign(&made, 4096, size) != 0) throw std::bad_alloc();
    std::lock_guard<std::mutex> hold(pinned().lock);
    pinned().blocks[reinterpret_cast<uintptr_t>(made)] = size;
    *hostPtr = made;
  };
}

EMU_C aclError aclrtFreeHost(void* hostPtr) {
  EMU_ENTRY {
    emu::require(hostPtr, "hostPtr");
    std::lock_guard<std::mutex> hold(pinned().lock);
    if (pinned().blocks.erase(reinterpret_cast<uintptr_t>(hostPtr)) == 0) {
      emu::misuse(emu::text("aclrtFreeHost of %p", hostPtr));
      throw emu::Error{ACL_ERROR_RT_PARAM_INVALID,
                       emu::text("%p did not come from aclrtMallocHost, or was freed", hostPtr)};
    }
    free(hostPtr);
  };
}

EMU_C aclError aclrtGetMemInfo(aclrtMemAttr, size_t* free, size_t* total) {
  EMU_ENTRY {
    emu::require(free, "free");
    emu::require(total, "total");
    emu::DeviceMemory& memory = emu::memory_of(emu::current_context()->device);
    *total = memory.total();
    *free = memory.total() - memory.used();
  };
}

// Registered memory is seen by the device at the host's address: there is one address space here.
EMU_C aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType, void** devPtr) {
  EMU_ENTRY {
    emu::require(ptr, "ptr");
    emu::require(devPtr, "devPtr");
    if (size == 0) throw emu::Error{ACL_ERROR_INVALID_PARAM, "size is 0"};
    emu::current_context();
    emu::require_host(ptr, size, "ptr", ACL_ERROR_RT_PARAM_INVALID);
    std::lock_guard<std::mutex> hold(pinned().lock);
    if (!pinned().registered.emplace(reinterpret_cast<uintptr_t>(ptr), size).second)
      throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, emu::text("%p is registered already", ptr)};
    *devPtr = ptr;
  };
}

EMU_C aclError aclrtHostUnregister(void* ptr) {
  EMU_ENTRY {
    emu::require(ptr, "ptr");
    std::lock_guard<std::mutex> hold(pinned().lock);
    if (pinned().registered.erase(reinterpret_cast<uintptr_t>(ptr)) == 0)
      throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, emu::text("%p was not registered", ptr)};
  };
}

EMU_C aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  EMU_ENTRY {
    emu::require(ptr, "ptr");
    emu::require(attributes, "attributes");
    int device = emu::device_of(ptr);
    *attributes = aclrtPtrAttributes{};
    attributes->location.id = device == -1 ? 0 : static_cast<uint32_t>(device);
    attributes->location.type = device != -1          ? ACL_MEM_LOCATION_TYPE_DEVICE
                                : emu::is_pinned(ptr) ? ACL_MEM_LOCATION_TYPE_HOST
                                                      : ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    attributes->pageSize = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
  };
}
