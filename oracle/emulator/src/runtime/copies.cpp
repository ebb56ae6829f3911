// Copies and fills. Synchronous ones run at once and wait for no stream.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "acl/acl_rt.h"
#include "runtime/checks.h"
#include "runtime/memory.h"

void emu::require_host(const void* address, size_t count, const char* parameter, int code) {
  static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t first = reinterpret_cast<uintptr_t>(address), last = 0;
  bool mapped = count == 0 || !__builtin_add_overflow(first, count - 1, &last);
  if (mapped && count > 0) {
    uintptr_t from = first / page * page;
    mapped = msync(reinterpret_cast<void*>(from), last - from + 1, MS_ASYNC) == 0;  // ENOMEM where nothing is mapped
  }
  if (!mapped)
    throw Error{code, text("%s: %zu bytes at %p are no memory of the host's or of a device", parameter, count, address)};
}

namespace {

// One side of a copy: host memory as it is, device memory through the kernels' mapping.
char* side(const void* address, size_t count, int device, const char* parameter, int code) {
  emu::require(address, parameter);
  if (device == -1) {
    emu::require_host(address, count, parameter, code);
    return static_cast<char*>(const_cast<void*>(address));
  }
  return emu::kernel_address(device, address, count, code);
}

const char* kind_name(int kind) {
  static const char* const names[] = {
      "HOST_TO_HOST", "HOST_TO_DEVICE",        "DEVICE_TO_HOST",         "DEVICE_TO_DEVICE",
      "DEFAULT",      "HOST_TO_BUF_TO_DEVICE", "INNER_DEVICE_TO_DEVICE", "INTER_DEVICE_TO_DEVICE"};
  if (kind < 0 || kind > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE) {
    throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, emu::text("kind %d is unknown", kind)};
  }
  return names[kind];
}

struct Copy {
  void* dst;
  const void* src;
  size_t count;
  int to, from;  // devices, -1 for the host

  void run(int code) const {
    if (count == 0) return;
    char* target = side(dst, count, to, "dst", code);
    const char* source = side(src, count, from, "src", code);
    memmove(target, source, count);
  }
};

// The direction follows from the pointers; a kind that contradicts them is the caller's mistake.
Copy make_copy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
  emu::require(dst, "dst");
  emu::require(src, "src");
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

// `height` rows of `width` bytes that begin `pitch` bytes apart.
struct Rows {
  void* dst;
  size_t to_pitch;
  const void* src;
  size_t from_pitch, width, height;

  void each(aclrtMemcpyKind kind, int code) const {
    for (size_t row = 0; row < height; row++) {
      char* to = static_cast<char*>(dst) + row * to_pitch;
      make_copy(to, width, static_cast<const char*>(src) + row * from_pitch, width, kind).run(code);
    }
  }
};

Rows make_rows(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height) {
  emu::require(dst, "dst");
  emu::require(src, "src");
  if (width > dpitch || width > spitch)
    throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, emu::text("width %zu is larger than a pitch: dpitch %zu, spitch %zu",
                                                           width, dpitch, spitch)};
  size_t bytes = 0;
  if (__builtin_mul_overflow(height, std::max(dpitch, spitch), &bytes))
    throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, emu::text("%zu rows of %zu bytes", height, std::max(dpitch, spitch))};
  return {dst, dpitch, src, spitch, width, height};
}

}  // namespace

EMU_C aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind) {
  EMU_ENTRY {
    auto context = emu::current_context();
    context->throw_if_refused();
    context->throw_if_failed();
    make_copy(dst, destMax, src, count, kind).run(ACL_ERROR_RT_PARAM_INVALID);
  };
}

EMU_C aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind,
                                aclrtStream stream) {
  EMU_ENTRY {
    auto on = emu::stream_of(stream);
    on->context()->throw_if_failed();
    Copy copy = make_copy(dst, destMax, src, count, kind);
    on->submit({"copy", false, [=] { copy.run(ACL_ERROR_RT_AICORE_EXCEPTION); }});
    // Pageable host memory: the real function returns when the copy is done.
    bool pageable = (copy.to == -1 && !emu::is_pinned(dst)) || (copy.from == -1 && !emu::is_pinned(src));
    if (pageable) {
      on->synchronize(-1);
      on->context()->throw_if_failed();
    }
  };
}

EMU_C aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  EMU_ENTRY {
    require_fill(devPtr, maxCount, count);
    auto context = emu::current_context();
    context->throw_if_failed();
    if (count == 0) return;
    memset(side(devPtr, count, emu::device_of(devPtr), "devPtr", ACL_ERROR_RT_PARAM_INVALID), value, count);
  };
}

EMU_C aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream) {
  EMU_ENTRY {
    require_fill(devPtr, maxCount, count);
    auto on = emu::stream_of(stream);
    int device = emu::device_of(devPtr);
    if (count == 0) return;
    on->submit({"fill", false,
                [=] { memset(side(devPtr, count, device, "devPtr", ACL_ERROR_RT_AICORE_EXCEPTION), value, count); }});
  };
}

EMU_C aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height,
                             aclrtMemcpyKind kind) {
  EMU_ENTRY {
    emu::current_context()->throw_if_failed();
    make_rows(dst, dpitch, src, spitch, width, height).each(kind, ACL_ERROR_RT_PARAM_INVALID);
  };
}

EMU_C aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                                  size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
  EMU_ENTRY {
    auto on = emu::stream_of(stream);
    on->context()->throw_if_failed();
    Rows rows = make_rows(dst, dpitch, src, spitch, width, height);
    make_copy(dst, width, src, width, kind);  // a kind that contradicts the pointers is told at once
    on->submit({"copy", false, [=] { rows.each(kind, ACL_ERROR_RT_AICORE_EXCEPTION); }});
  };
}
