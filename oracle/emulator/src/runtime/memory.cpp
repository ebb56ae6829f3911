// Device and host memory, copies and fills. Sync copies run at once and wait for no stream.
#include <cstdlib>
#include <cstring>
#include <set>

#include "acl/acl_rt.h"
#include "runtime/checks.h"

namespace {

struct HostBlocks {
  std::mutex lock;
  std::map<uintptr_t, size_t> blocks;  // start -> bytes of pinned memory

  bool holds(const void* address) {
    std::lock_guard<std::mutex> hold(lock);
    uintptr_t a = reinterpret_cast<uintptr_t>(address);
    auto after = blocks.upper_bound(a);
    return after != blocks.begin() && a < std::prev(after)->first + std::prev(after)->second;
  }
};

HostBlocks& pinned() {
  static HostBlocks& all = *new HostBlocks;
  return all;
}

size_t pinned_count() {
  std::lock_guard<std::mutex> hold(pinned().lock);
  return pinned().blocks.size();
}

struct Register {
  Register() { emu::register_live_count("host_allocations", pinned_count); }
} registered;

void allocate(void** devPtr, size_t size, size_t padding) {
  emu::require(devPtr, "devPtr");
  if (size == 0) throw emu::Error{ACL_ERROR_INVALID_PARAM, "size is 0"};
  if (size > SIZE_MAX - 64) throw emu::Error{ACL_ERROR_RT_MEMORY_ALLOCATION, emu::text("size is %zu", size)};
  *devPtr = emu::memory_of(emu::current_context()->device).allocate(size, (size + padding) / 32 * 32);
}

// One side of a copy: host memory as it is, device memory through the kernels' mapping.
char* side(const void* address, size_t count, int device, const char* parameter, int code) {
  emu::require(address, parameter);
  if (device == -1) return static_cast<char*>(const_cast<void*>(address));
  return emu::kernel_address(device, address, count, code);
}

const char* kind_name(aclrtMemcpyKind kind) {
  static const char* const names[] = {
      "HOST_TO_HOST", "HOST_TO_DEVICE",        "DEVICE_TO_HOST",         "DEVICE_TO_DEVICE",
      "DEFAULT",      "HOST_TO_BUF_TO_DEVICE", "INNER_DEVICE_TO_DEVICE", "INTER_DEVICE_TO_DEVICE"};
  if (kind < 0 || kind > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE) {
    throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, emu::text("kind %d is unknown", static_cast<int>(kind))};
  }
  return names[kind];
}

struct Copy {
  void* dst;
  const void* src;
  size_t count;
  int to, from;  // devices, -1 for the host

  void run(int code) const {
    char* target = side(dst, count, to, "dst", code);
    const char* source = side(src, count, from, "src", code);
    memmove(target, source, count);
  }
};

// The direction follows from the pointers; a kind that contradicts them is the caller's mistake.
Copy make_copy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
  emu::require(dst, "dst");
  emu::require(src, "src");
  if (count == 0) throw emu::Error{ACL_ERROR_INVALID_PARAM, "count is 0"};
  if (count > destMax)
    throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, emu::text("count %zu is larger than destMax %zu", count, destMax)};
  Copy copy{dst, src, count, emu::device_of(dst), emu::device_of(src)};
  const char* name = kind_name(kind);
  bool to_device = kind == 1 || kind == 3 || kind >= 5, from_device = kind == 2 || kind == 3 || kind >= 6;
  if (kind != ACL_MEMCPY_DEFAULT && (to_device != (copy.to != -1) || from_device != (copy.from != -1))) {
    throw emu::Error{ACL_ERROR_RT_PARAM_INVALID,
                     emu::text("kind is %s, but src is %s memory and dst is %s memory", name,
                               copy.from == -1 ? "host" : "device", copy.to == -1 ? "host" : "device")};
  }
  return copy;
}

void require_fill(void* devPtr, size_t maxCount, size_t count) {
  emu::require(devPtr, "devPtr");
  if (count > maxCount)
    throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, emu::text("count %zu is larger than maxCount %zu", count, maxCount)};
}

}  // namespace

EMU_C aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  static emu::Entry entry("aclrtMalloc");
  return entry([&] { allocate(devPtr, size, 63); });
}

EMU_C aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  static emu::Entry entry("aclrtMallocCached");
  return entry([&] { allocate(devPtr, size, 63); });
}

EMU_C aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  static emu::Entry entry("aclrtMallocAlign32");
  return entry([&] { allocate(devPtr, size, 31); });
}

EMU_C aclError aclrtFree(void* devPtr) {
  static emu::Entry entry("aclrtFree");
  return entry([&] {
    emu::require(devPtr, "devPtr");
    emu::current_context();
    int device = emu::device_of(devPtr);
    if (device == -1) {
      emu::misuse(emu::text("aclrtFree of %p, which is not device memory", devPtr));
      throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, emu::text("%p is not device memory", devPtr)};
    }
    emu::memory_of(device).release(devPtr);
  });
}

EMU_C aclError aclrtMallocHost(void** hostPtr, size_t size) {
  static emu::Entry entry("aclrtMallocHost");
  return entry([&] {
    emu::require(hostPtr, "hostPtr");
    if (size == 0) throw emu::Error{ACL_ERROR_INVALID_PARAM, "size is 0"};
    emu::current_context();
    void* made = nullptr;
    if (posix_memalign(&made, 4096, size) != 0) throw std::bad_alloc();
    std::lock_guard<std::mutex> hold(pinned().lock);
    pinned().blocks[reinterpret_cast<uintptr_t>(made)] = size;
    *hostPtr = made;
  });
}

EMU_C aclError aclrtFreeHost(void* hostPtr) {
  static emu::Entry entry("aclrtFreeHost");
  return entry([&] {
    emu::require(hostPtr, "hostPtr");
    std::lock_guard<std::mutex> hold(pinned().lock);
    if (pinned().blocks.erase(reinterpret_cast<uintptr_t>(hostPtr)) == 0) {
      emu::misuse(emu::text("aclrtFreeHost of %p", hostPtr));
      throw emu::Error{ACL_ERROR_RT_PARAM_INVALID,
                       emu::text("%p did not come from aclrtMallocHost, or was freed", hostPtr)};
    }
    free(hostPtr);
  });
}

EMU_C aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
  static emu::Entry entry("aclrtMemcpy");
  return entry([&] {
    auto context = emu::current_context();
    context->throw_if_failed();
    make_copy(dst, destMax, src, count, kind).run(ACL_ERROR_RT_PARAM_INVALID);
  });
}

EMU_C aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                                aclrtStream stream) {
  static emu::Entry entry("aclrtMemcpyAsync");
  return entry([&] {
    auto on = emu::stream_of(stream);
    on->context()->throw_if_failed();
    Copy copy = make_copy(dst, destMax, src, count, kind);
    on->submit({"copy", false, [=] { copy.run(ACL_ERROR_RT_AICORE_EXCEPTION); }});
    // Pageable host memory: the real function returns when the copy is done.
    bool pageable = (copy.to == -1 && !pinned().holds(dst)) || (copy.from == -1 && !pinned().holds(src));
    if (pageable) {
      on->synchronize(-1);
      on->context()->throw_if_failed();
    }
  });
}

EMU_C aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  static emu::Entry entry("aclrtMemset");
  return entry([&] {
    require_fill(devPtr, maxCount, count);
    auto context = emu::current_context();
    context->throw_if_failed();
    memset(side(devPtr, count, emu::device_of(devPtr), "devPtr", ACL_ERROR_RT_PARAM_INVALID), value, count);
  });
}

EMU_C aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
  static emu::Entry entry("aclrtMemsetAsync");
  return entry([&] {
    require_fill(devPtr, maxCount, count);
    auto on = emu::stream_of(stream);
    int device = emu::device_of(devPtr);
    on->submit({"fill", false,
                [=] { memset(side(devPtr, count, device, "devPtr", ACL_ERROR_RT_AICORE_EXCEPTION), value, count); }});
  });
}

EMU_C aclError aclrtGetMemInfo(aclrtMemAttr, size_t* free, size_t* total) {
  static emu::Entry entry("aclrtGetMemInfo");
  return entry([&] {
    emu::require(free, "free");
    emu::require(total, "total");
    emu::DeviceMemory& memory = emu::memory_of(emu::current_context()->device);
    *total = memory.total();
    *free = memory.total() - memory.used();
  });
}
