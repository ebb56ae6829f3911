// What copies ask about memory.
#pragma once

#include <cstddef>

namespace emu {

bool is_pinned(const void* address);  // aclrtMallocHost, aclrtHostRegister
// Throws Error `code` where host memory is not mapped: a wild pointer.
void require_host(const void* address, size_t count, const char* parameter, int code);

}  // namespace emu
