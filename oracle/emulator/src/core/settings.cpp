#include "core/settings.h"

#include <cstdlib>

namespace emu {

long setting(const char* name, long otherwise) {
  const char* given = getenv(name);
  if (given == nullptr || *given == '\0') return otherwise;
  char* end = nullptr;
  long value = strtol(given, &end, 10);
  if (*end != '\0' || value < 0) {
    throw Error{ACL_ERROR_INVALID_PARAM,
                text("the environment variable %s is '%s', not a whole number >= 0", name, given)};
  }
  return value;
}

}  // namespace emu
