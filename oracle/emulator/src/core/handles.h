// Handles: opaque, never used twice and not an address, so a stale or foreign one is always recognised.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/error.h"

namespace emu {

// The next handle of any kind: an address that is mapped on no Linux, so that touching it faults.
EMU_PUBLIC void* new_handle();

template <class T>
class HandleTable {
 public:
  void* add(std::shared_ptr<T> object) {
    void* handle = new_handle();
    std::lock_guard<std::mutex> hold(lock_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  std::shared_ptr<T> find(const void* handle) {
    std::lock_guard<std::mutex> hold(lock_);
    auto found = objects_.find(const_cast<void*>(handle));
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<T> remove(const void* handle) {
    std::lock_guard<std::mutex> hold(lock_);
    auto found = objects_.find(const_cast<void*>(handle));
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  template <class Predicate>
  void remove_if(Predicate&& matches) {
    std::lock_guard<std::mutex> hold(lock_);
    for (auto it = objects_.begin(); it != objects_.end();)
      it = matches(*it->second) ? objects_.erase(it) : std::next(it);
  }
  size_t size() {
    std::lock_guard<std::mutex> hold(lock_);
    return objects_.size();
  }

 private:
  std::mutex lock_;
  std::unordered_map<void*, std::shared_ptr<T>> objects_;
};

// Says how many objects of a kind are alive, for aclemuLiveCount; libraries make theirs when loaded.
struct EMU_PUBLIC LiveCount {
  LiveCount(const char* kind, size_t (*count)());
};
uint64_t live_count(const char* kind);  // UINT64_MAX for an unknown kind

}  // namespace emu
