// Device memory: addresses that the host cannot touch, and a second mapping of the same bytes for kernels and copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

#include "core/error.h"

namespace emu {

// One block that aclrtMalloc returned.
struct Block {
  uintptr_t start;
  size_t size;       // what was asked for
  size_t usable;     // with the padding the runtime documents
  size_t reserved;   // with the guard bytes behind it
  unsigned long id;  // the how-manieth allocation of the device
};

class EMU_PUBLIC DeviceMemory {
 public:
  // Reserves the addresses; half the host's memory, 64 GiB at most, or ACLNN_EMULATOR_MEMORY_MB.
  explicit DeviceMemory(int device);

  void* allocate(size_t size, size_t usable);  // throws Error 207001 when full
  // Throws Error for an address that is not the start of a live block, or whose guard bytes were overwritten.
  void release(void* address);
  void release_all();

  bool contains(const void* address) const;
  // The kernels' address of `count` bytes that must lie in one live block; throws Error `code` naming what is wrong.
  char* host(const void* address, size_t count, int code) const;

  size_t used() const;
  size_t total() const { return total_; }
  size_t blocks() const;

 private:
  std::string describe(uintptr_t address, size_t count) const;
  uintptr_t reserve(size_t bytes);
  void recycle(const Block& block);
  void check_guard(const Block& block);

  const int device_;
  size_t total_ = 0;
  uintptr_t device_base_ = 0;
  char* host_base_ = nullptr;
  mutable std::mutex lock_;
  std::map<uintptr_t, Block> live_;
  std::map<uintptr_t, size_t> free_;  // start -> bytes, coalesced
  std::deque<Block> quarantine_;      // freed lately: not reused yet, so that a late use is seen
  size_t quarantined_ = 0;
  size_t used_ = 0;
  unsigned long allocations_ = 0;
};

}  // namespace emu
