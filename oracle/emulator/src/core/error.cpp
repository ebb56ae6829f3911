#include "core/error.h"

#include <cstdarg>
#include <cstdio>
#include <mutex>

#include "core/trace.h"

namespace emu {
namespace {

constexpr size_t kMessageLimit = 8192;  // the real string grows for ever; a test of 100,000 refusals need not

struct Messages {
  std::string pending;  // since the last aclGetRecentErrMsg
  std::string shown;    // everything shown before: the real runtime never clears it
};

Messages& messages() {
  thread_local Messages mine;
  return mine;
}

const char* tag(int code) {
  if (code / 1000 == 161) return "EZ1001";
  if (code == ACL_ERROR_RT_MEMORY_ALLOCATION) return "EL0004";
  if (code / 1000 == 107 || code / 1000 == 100) return "EE1001";
  return "EZ9999";
}

struct Misuses {
  std::mutex lock;
  unsigned long count = 0;
  std::string last;
};

Misuses& misuses() { return immortal<Misuses>(); }

}  // namespace

std::string text(const char* format, ...) {
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  std::string out(static_cast<size_t>(vsnprintf(nullptr, 0, format, list)), '\0');
  vsnprintf(&out[0], out.size() + 1, format, again);
  va_end(again);
  va_end(list);
  return out;
}

void say(int code, const std::string& message) {
  Messages& mine = messages();
  mine.pending = (std::string(tag(code)) + ": " + message + "\n" + mine.pending).substr(0, kMessageLimit);
}

const char* recent_messages() {
  Messages& mine = messages();
  if (!mine.pending.empty()) {
    mine.shown = (mine.pending + mine.shown).substr(0, kMessageLimit);
    mine.pending.clear();
  }
  return mine.shown.empty() ? nullptr : mine.shown.c_str();
}

void misuse(const std::string& what) {
  trace_line("misuse: " + what);
  std::lock_guard<std::mutex> hold(misuses().lock);
  misuses().count++;
  misuses().last = what;
}

void misused(int code, const std::string& what) {
  misuse(what);
  throw Error{code, what};
}

unsigned long misuse_count() {
  std::lock_guard<std::mutex> hold(misuses().lock);
  return misuses().count;
}

std::string last_misuse() {
  std::lock_guard<std::mutex> hold(misuses().lock);
  return misuses().last;
}

}  // namespace emu
