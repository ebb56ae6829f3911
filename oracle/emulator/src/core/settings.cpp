#include "core/settings.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "core/trace.h"

namespace emu {
namespace {

constexpr const char* kPrefix = "ACLNN_EMULATOR_";
constexpr const char* kNumbers[] = {"DEVICES", "MEMORY_MB", "LATENCY_US", "OP_TIMEOUT_MS", "LEAKS"};
constexpr const char* kTexts[] = {"SOC", "CANN", "FAULTS", "TRACE"};  // who reads them checks them

[[noreturn]] void unknown(const std::string& name) {
  std::string known;
  for (const char* each : kTexts) known += std::string(" ") + each;
  for (const char* each : kNumbers) known += std::string(" ") + each;
  throw Error{ACL_ERROR_INVALID_PARAM,
              text("the environment variable %s is none of the emulator's; known after %s:%s", name.c_str(), kPrefix,
                   known.c_str())};
}

bool among(const std::string& word) {
  for (const char* each : kTexts) {
    if (word == each) return true;
  }
  for (const char* each : kNumbers) {
    if (word == each) return setting((kPrefix + word).c_str(), 0) >= 0;
  }
  return false;
}

}  // namespace

long setting(const char* name, long otherwise, long most) {
  const char* given = getenv(name);
  if (given == nullptr || *given == '\0') return otherwise;
  char* end = nullptr;
  long value = strtol(given, &end, 10);
  if (*end != '\0' || value < 0 || value > most) {
    throw Error{ACL_ERROR_INVALID_PARAM,
                text("the environment variable %s is '%s', not a whole number from 0 to %ld", name, given, most)};
  }
  return value;
}

void check_settings() {
  for (char** entry = environ; *entry != nullptr; entry++) {
    if (strncmp(*entry, kPrefix, strlen(kPrefix)) != 0) continue;
    std::string name(*entry, strcspn(*entry, "="));
    if (!among(name.substr(strlen(kPrefix)))) unknown(name);
  }
  std::string unwritable = unwritable_trace();
  if (!unwritable.empty())
    throw Error{ACL_ERROR_INVALID_PARAM, text("ACLNN_EMULATOR_TRACE=%s cannot be written", unwritable.c_str())};
}

}  // namespace emu
