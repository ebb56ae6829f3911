#include "core/soc.h"

#include <cstdlib>
#include <cstring>
#include <iterator>

namespace emu {
namespace {

constexpr Soc kSocs[] = {
    {"Ascend910B1", "ascend910b", true, false, false, false, KernelForm::kTbeA2, 24, 192L << 20},
    {"Ascend910_9391", "ascend910_93", true, false, false, false, KernelForm::kTbeA2, 24, 192L << 20},
    {"Ascend950PR_9589", "ascend950", true, true, false, false, KernelForm::k950, 32, 128L << 20},
    {"Ascend910A", "ascend910", false, false, true, true, KernelForm::kTbe910, 32, 32L << 20},
    {"Ascend310P1", "ascend310p", false, false, true, true, KernelForm::kTbeA2, 8, 16L << 20},
};

const Soc* find_soc() {
  const char* asked = getenv("ACLNN_EMULATOR_SOC");
  if (asked == nullptr || *asked == '\0') return &kSocs[0];
  for (const Soc& known : kSocs) {
    if (strcmp(asked, known.device) == 0 || strcmp(asked, known.soc) == 0) return &known;
  }
  return nullptr;
}

}  // namespace

const Soc& soc() {
  static const Soc* const found = find_soc();
  if (found != nullptr) return *found;
  std::string known;
  for (const Soc& each : kSocs) known += std::string(known.empty() ? "" : ", ") + each.device;
  throw Error{ACL_ERROR_INVALID_PARAM,
              text("ACLNN_EMULATOR_SOC is '%s'; known: %s", getenv("ACLNN_EMULATOR_SOC"), known.c_str())};
}

bool follows(const char* version) {
  static const char* const kVersions[] = {"8.5", "9.0", "9.1", "9.2", "master"};
  auto place = [](const char* name) {
    size_t k = 0;
    while (k < std::size(kVersions) && strcmp(name, kVersions[k]) != 0) k++;
    return k;
  };
  static const size_t followed = [&] {
    const char* asked = getenv("ACLNN_EMULATOR_CANN");
    size_t found = place(asked == nullptr || *asked == '\0' ? "8.5" : asked);  // the toolkit's own
    if (found < std::size(kVersions)) return found;
    throw Error{ACL_ERROR_INVALID_PARAM,
                text("ACLNN_EMULATOR_CANN is '%s'; known: 8.5, 9.0, 9.1, 9.2, master", asked)};
  }();
  return followed >= place(version);
}

}  // namespace emu
