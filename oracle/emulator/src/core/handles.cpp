#include "core/handles.h"

#include <map>
#include <string>

namespace emu {
namespace {

constexpr uintptr_t kFirstHandle = 0x00EC000000000000;

struct Counts {
  std::mutex lock;
  std::map<std::string, size_t (*)()> by_kind;
};

Counts& counts() { return immortal<Counts>(); }

}  // namespace

void* new_handle() {
  static std::atomic<uintptr_t> next{kFirstHandle};
  return reinterpret_cast<void*>(next.fetch_add(16));
}

LiveCount::LiveCount(const char* kind, size_t (*count)()) {
  std::lock_guard<std::mutex> hold(counts().lock);
  counts().by_kind[kind] = count;
}

uint64_t live_count(const char* kind) {
  std::lock_guard<std::mutex> hold(counts().lock);
  auto found = counts().by_kind.find(kind);
  return found == counts().by_kind.end() ? UINT64_MAX : found->second();
}

}  // namespace emu
