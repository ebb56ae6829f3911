#include "core/trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace emu {
namespace {

struct Trace {
  std::mutex lock;
  FILE* file = nullptr;
  unsigned long line = 0;
  std::atomic<bool> on{false};

  std::string unwritable;  // what the environment asked for in vain

  Trace() {
    const char* asked = getenv("ACLNN_EMULATOR_TRACE");
    if (!open(asked)) unwritable = asked;
  }

  bool open(const char* path) {
    std::lock_guard<std::mutex> hold(lock);
    if (file != nullptr) fclose(file);
    file = path == nullptr || *path == '\0' ? nullptr : fopen(path, "a");
    on = file != nullptr;
    return file != nullptr || path == nullptr || *path == '\0';
  }
};

Trace& trace() { return immortal<Trace>(); }

thread_local std::string arguments;

}  // namespace

bool tracing() { return trace().on; }

void trace_line(const std::string& line) {
  if (!tracing()) return;
  Trace& t = trace();
  std::lock_guard<std::mutex> hold(t.lock);
  if (t.file == nullptr) return;
  fprintf(t.file, "%lu %ld %s\n", ++t.line, static_cast<long>(syscall(SYS_gettid)), line.c_str());
  fflush(t.file);
}

void trace_arguments(std::string given) { arguments = std::move(given); }

std::string take_trace_arguments() { return std::exchange(arguments, std::string()); }

bool trace_to(const char* path) { return trace().open(path); }

std::string unwritable_trace() { return trace().unwritable; }

}  // namespace emu
