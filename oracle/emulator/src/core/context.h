// Devices and contexts: which device a thread works on, and the fault that has broken a context.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/handles.h"
#include "core/memory.h"
#include "core/stream.h"

namespace emu {

struct Fault {
  int code = 0;
  std::string message;
};

class EMU_PUBLIC Context {
 public:
  Context(int device, bool primary) : device(device), primary(primary) {}

  Fault fault();
  void fail(int code, const std::string& message);  // the first fault stays
  void throw_if_failed();
  // What a call would have refused, had its caller been listening: thrown by what waits for the device next, and once
  // more after a wait that a copy follows, of which torch_npu shows the words.
  void refuse_later(const std::string& message);
  void throw_if_refused(bool copy_follows = false);

  void add(const std::shared_ptr<Stream>& stream);
  void open(const std::shared_ptr<Stream>& stream);  // adds the null stream
  // The null stream; throws Error 107002 when another thread has closed the context meanwhile.
  std::shared_ptr<Stream> default_stream();
  std::vector<std::shared_ptr<Stream>> streams();
  // Ends every stream of the context; by force as Stream::close.
  void close(bool force);

  const int device;
  const bool primary;
  std::map<int, int64_t> options;          // aclrtCtxSetSysParamOpt, under `lock`
  std::mutex lock;

 private:
  Fault fault_;
  std::string refusal_;
  bool refused_before_copy_ = false;
  std::shared_ptr<Stream> default_stream_;
  std::vector<std::weak_ptr<Stream>> streams_;
};

class Event {
 public:
  explicit Event(uint32_t flags) : flags(flags) {}
  const uint32_t flags;
  std::mutex lock;
  std::shared_ptr<Recording> latest;   // null until recorded
  std::weak_ptr<Recording> last_wait;  // done when the last stream wait is over
};

// Tables of everything that has a handle.
HandleTable<Context>& contexts();
HandleTable<Stream>& streams();
HandleTable<Event>& events();

// Devices that this process sees (ASCEND_RT_VISIBLE_DEVICES): machine ids in order. Throws Error for a bad list.
const std::vector<int>& visible_devices();
void require_device(int32_t device);  // throws Error 107001
DeviceMemory& memory_of(int device);
// The device whose memory an address lies in, or -1 (host memory, or no memory).
EMU_PUBLIC int device_of(const void* address);
// Kernels' view of device memory; throws Error `code` for memory that is not alive, too small or on another device.
EMU_PUBLIC char* kernel_address(int device, const void* address, size_t count, int code);

void set_device(int32_t device);  // one reference more, and the primary context becomes the thread's
void reset_device(int32_t device, bool force);
bool has_primary_context(int32_t device);
size_t used_device_bytes();
size_t device_blocks();

std::shared_ptr<Context> make_context(int device, bool primary, void** handle);
void set_current(void* handle);
void* current_handle();                                 // null if the thread has none
EMU_PUBLIC std::shared_ptr<Context> current_context();  // throws Error 107002
// The stream of a handle, or the context's default stream for null; throws Error 107002, 107003 or 107017.
EMU_PUBLIC std::shared_ptr<Stream> stream_of(void* handle);

}  // namespace emu
