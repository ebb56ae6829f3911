#include "core/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/settings.h"

namespace emu {
namespace {

constexpr size_t kAlignment = 512;          // of every block, as the real allocator gives at least
constexpr size_t kFirst = 4096;             // bytes before the first block that nobody owns
constexpr size_t kGuard = 64;               // at least so many guard bytes behind a block
constexpr size_t kQuarantine = 64UL << 20;  // bytes freed lately that are not handed out again
constexpr size_t kPageOut = 1UL << 20;      // larger freed blocks give their pages back at once
constexpr unsigned char kFresh = 0xFF;      // uninitialised memory reads as NaN
constexpr unsigned char kGuardByte = 0xFB;

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

size_t wanted_bytes() {
  size_t host = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t standard = std::min<size_t>(64UL << 30, host / 2);
  return static_cast<size_t>(setting("ACLNN_EMULATOR_MEMORY_MB", static_cast<long>(standard >> 20))) << 20;
}

void* map(size_t bytes, int protection) {
  return mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

}  // namespace

DeviceMemory::DeviceMemory(int device) : device_(device) {
  for (total_ = wanted_bytes(); total_ >= (1UL << 20); total_ /= 2) {  // less where the address space is limited
    void* addresses = map(total_, PROT_NONE);
    void* bytes = map(total_, PROT_READ | PROT_WRITE);
    if (addresses != MAP_FAILED && bytes != MAP_FAILED) {
      device_base_ = reinterpret_cast<uintptr_t>(addresses);
      host_base_ = static_cast<char*>(bytes);
      free_[device_base_ + kFirst] = total_ - kFirst;
      return;
    }
    if (addresses != MAP_FAILED) munmap(addresses, total_);
    if (bytes != MAP_FAILED) munmap(bytes, total_);
  }
  throw Error{ACL_ERROR_RT_MEMORY_ALLOCATION, text("device %d: no address space for its memory", device)};
}

uintptr_t DeviceMemory::reserve(size_t bytes) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second < bytes) continue;
    uintptr_t start = it->first;
    size_t rest = it->second - bytes;
    free_.erase(it);
    if (rest > 0) free_[start + bytes] = rest;
    return start;
  }
  return 0;
}

void* DeviceMemory::allocate(size_t size, size_t usable) {
  if (usable < size || usable > total_) {
    throw Error{ACL_ERROR_RT_MEMORY_ALLOCATION,
                text("device %d: %zu bytes asked for, %zu in all", device_, size, total_)};
  }
  std::lock_guard<std::mutex> hold(lock_);
  size_t reserved = round_up(usable + kGuard, kAlignment);
  uintptr_t start = reserve(reserved);
  while (start == 0 && !quarantine_.empty()) {
    recycle(quarantine_.front());
    quarantine_.pop_front();
    start = reserve(reserved);
  }
  if (start == 0) {
    throw Error{ACL_ERROR_RT_MEMORY_ALLOCATION,
                text("device %d: %zu bytes asked for, %zu of %zu in use", device_, size, used_, total_)};
  }
  live_[start] = Block{start, size, usable, reserved, ++allocations_};
  used_ += reserved;
  char* bytes = host_base_ + (start - device_base_);
  memset(bytes, kFresh, usable);
  memset(bytes + usable, kGuardByte, reserved - usable);
  return reinterpret_cast<void*>(start);
}

void DeviceMemory::check_guard(const Block& block) {
  const char* bytes = host_base_ + (block.start - device_base_);
  for (size_t i = block.usable; i < block.reserved; i++) {
    if (static_cast<unsigned char>(bytes[i]) == kGuardByte) continue;
    misused(ACL_ERROR_RT_AICORE_EXCEPTION,
            text("block %lu of %zu bytes on device %d was written %zu bytes past its end", block.id, block.size,
                 device_, i - block.usable + 1));
  }
}

void DeviceMemory::release(void* address) {
  std::lock_guard<std::mutex> hold(lock_);
  auto found = live_.find(reinterpret_cast<uintptr_t>(address));
  if (found == live_.end())
    misused(ACL_ERROR_RT_PARAM_INVALID,
            text("aclrtFree of %p: %s", address, describe(reinterpret_cast<uintptr_t>(address), 0).c_str()));
  Block block = found->second;
  live_.erase(found);
  used_ -= block.reserved;
  quarantine_.push_back(block);
  quarantined_ += block.reserved;
  while (quarantined_ > kQuarantine) {
    recycle(quarantine_.front());
    quarantine_.pop_front();
  }
  check_guard(block);
}

// Gives a freed block's addresses back, joined with free neighbours.
void DeviceMemory::recycle(const Block& block) {
  quarantined_ -= block.reserved;
  if (block.reserved >= kPageOut) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    uintptr_t from = round_up(block.start - device_base_, page),
              to = (block.start - device_base_ + block.reserved) / page * page;
    madvise(host_base_ + from, to - from, MADV_DONTNEED);
  }
  uintptr_t start = block.start;
  size_t bytes = block.reserved;
  auto next = free_.lower_bound(start);
  if (next != free_.end() && next->first == start + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == start) {
      before->second += bytes;
      return;
    }
  }
  free_[start] = bytes;
}

void DeviceMemory::release_all() {
  std::lock_guard<std::mutex> hold(lock_);
  for (const auto& [start, block] : live_) quarantine_.push_back(block), quarantined_ += block.reserved;
  live_.clear();
  used_ = 0;
  while (quarantined_ > kQuarantine) {
    recycle(quarantine_.front());
    quarantine_.pop_front();
  }
}

bool DeviceMemory::contains(const void* address) const {
  uintptr_t a = reinterpret_cast<uintptr_t>(address);
  return a >= device_base_ && a - device_base_ < total_;
}

std::string DeviceMemory::describe(uintptr_t address, size_t count) const {
  auto after = live_.upper_bound(address);
  if (after != live_.begin()) {
    const Block& block = std::prev(after)->second;
    if (address < block.start + block.reserved) {
      return text("bytes [%zu, %zu) of block %lu on device %d, which has %zu",
                  static_cast<size_t>(address - block.start), static_cast<size_t>(address - block.start) + count,
                  block.id, device_, block.size);
    }
  }
  for (auto it = quarantine_.rbegin(); it != quarantine_.rend(); ++it) {
    if (address >= it->start && address < it->start + it->reserved) {
      return text("block %lu of %zu bytes on device %d, which was freed", it->id, it->size, device_);
    }
  }
  return text("no allocated memory of device %d", device_);
}

char* DeviceMemory::host(const void* address, size_t count, int code) const {
  uintptr_t a = reinterpret_cast<uintptr_t>(address);
  std::lock_guard<std::mutex> hold(lock_);
  auto after = live_.upper_bound(a);
  if (after != live_.begin()) {
    const Block& block = std::prev(after)->second;
    size_t offset = a - block.start;
    if (offset <= block.usable && count <= block.usable - offset) return host_base_ + (a - device_base_);
  }
  throw Error{code, text("%zu bytes at %p: %s", count, address, describe(a, count).c_str())};
}

size_t DeviceMemory::used() const {
  std::lock_guard<std::mutex> hold(lock_);
  return used_;
}

size_t DeviceMemory::blocks() const {
  std::lock_guard<std::mutex> hold(lock_);
  return live_.size();
}

}  // namespace emu
