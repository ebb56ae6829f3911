// The devices of the process: which ones, their memory, their primary contexts.
#include <cstdlib>

#include "core/context.h"
#include "core/settings.h"

namespace emu {
namespace {

constexpr long kResetPatienceMs = 2000;

struct Device {
  std::mutex lock;
  std::unique_ptr<DeviceMemory> memory;  // reserved when first used
  unsigned long references = 0;          // aclrtSetDevice minus aclrtResetDevice
  void* primary = nullptr;
};

std::vector<std::unique_ptr<Device>>& devices() {
  static auto& all = *[] {
    auto* made = new std::vector<std::unique_ptr<Device>>;
    for (size_t i = 0; i < visible_devices().size(); i++) made->push_back(std::make_unique<Device>());
    return made;
  }();
  return all;
}

// The ids of ASCEND_RT_VISIBLE_DEVICES: parsing stops at the first that is no number or out of range.
std::vector<int> parse_visible(const char* list, long count) {
  std::vector<int> ids;
  for (const char* at = list; *at != '\0';) {
    char* end = nullptr;
    long id = strtol(at, &end, 10);
    if (end == at || id < 0 || id >= count || (*end != ',' && *end != '\0')) break;
    if (!ids.empty() && id <= ids.back()) {
      throw Error{ACL_ERROR_RT_INVALID_DEVICEID,
                  text("ASCEND_RT_VISIBLE_DEVICES='%s': the ids must ascend without duplicates", list)};
    }
    ids.push_back(static_cast<int>(id));
    at = *end == ',' ? end + 1 : end;
  }
  if (ids.empty() && *list != '\0') {
    throw Error{ACL_ERROR_RT_INVALID_DEVICEID,
                text("ASCEND_RT_VISIBLE_DEVICES='%s' names no device of 0..%ld", list, count - 1)};
  }
  return ids;
}

std::vector<int> find_visible() {
  long count = setting("ACLNN_EMULATOR_DEVICES", 8, 64);
  const char* list = getenv("ASCEND_RT_VISIBLE_DEVICES");
  if (list != nullptr) return parse_visible(list, count);
  std::vector<int> all;
  for (long i = 0; i < count; i++) all.push_back(static_cast<int>(i));
  return all;
}

const LiveCount kMemoryCounts[] = {
    {"allocations", device_blocks},
    {"bytes", used_device_bytes},
};

}  // namespace

const std::vector<int>& visible_devices() {
  static const std::vector<int>& ids = *new std::vector<int>(find_visible());  // a bad list throws at every call
  return ids;
}

void require_device(int32_t device) {
  if (device < 0 || static_cast<size_t>(device) >= visible_devices().size()) {
    throw Error{ACL_ERROR_RT_INVALID_DEVICEID, text("device %d: this process has devices 0..%zd", device,
                                                    static_cast<ssize_t>(visible_devices().size()) - 1)};
  }
}

DeviceMemory& memory_of(int device) {
  Device& d = *devices()[static_cast<size_t>(device)];
  std::lock_guard<std::mutex> hold(d.lock);
  if (d.memory == nullptr) d.memory = std::make_unique<DeviceMemory>(device);
  return *d.memory;
}

template <class Visit>
static void each_memory(Visit&& visit) {
  for (size_t i = 0; i < devices().size(); i++) {
    std::unique_lock<std::mutex> hold(devices()[i]->lock);
    DeviceMemory* memory = devices()[i]->memory.get();
    hold.unlock();
    if (memory != nullptr) visit(static_cast<int>(i), *memory);
  }
}

int device_of(const void* address) {
  int found = -1;
  each_memory([&](int device, DeviceMemory& memory) {
    if (memory.contains(address)) found = device;
  });
  return found;
}

char* kernel_address(int device, const void* address, size_t count, int code) {
  int owner = device_of(address);
  if (owner == -1) throw Error{code, text("%p is not device memory", address)};
  if (owner != device) throw Error{code, text("%p is memory of device %d, used on device %d", address, owner, device)};
  return memory_of(device).host(address, count, code);
}

size_t used_device_bytes() {
  size_t sum = 0;
  each_memory([&](int, DeviceMemory& memory) { sum += memory.used(); });
  return sum;
}

size_t device_blocks() {
  size_t sum = 0;
  each_memory([&](int, DeviceMemory& memory) { sum += memory.blocks(); });
  return sum;
}

void set_device(int32_t device) {
  require_device(device);
  Device& d = *devices()[static_cast<size_t>(device)];
  std::lock_guard<std::mutex> hold(d.lock);
  if (d.primary == nullptr) make_context(device, true, &d.primary);
  d.references++;
  set_current(d.primary);
}

bool has_primary_context(int32_t device) {
  require_device(device);
  Device& d = *devices()[static_cast<size_t>(device)];
  std::lock_guard<std::mutex> hold(d.lock);
  return d.primary != nullptr;
}

void reset_device(int32_t device, bool force) {
  require_device(device);
  Device& d = *devices()[static_cast<size_t>(device)];
  std::unique_lock<std::mutex> hold(d.lock);
  if (d.references == 0)
    throw Error{ACL_ERROR_RT_INVALID_DEVICEID, text("device %d was not set, or was reset before", device)};
  if (!force && --d.references > 0) return;
  d.references = 0;
  void* primary = d.primary;
  d.primary = nullptr;
  DeviceMemory* memory = d.memory.get();
  hold.unlock();
  auto context = contexts().remove(primary);
  if (context != nullptr) {
    for (auto& stream : context->streams()) {
      // A stream finishes its work first; a hanging one is aborted, or nobody could reset its device.
      stream->synchronize(kResetPatienceMs);
    }
    context->close(true);
    streams().remove_if([&](Stream& stream) { return stream.context() == context; });
  }
  if (memory != nullptr) memory->release_all();
}

}  // namespace emu
