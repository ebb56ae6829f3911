// Profiling: accepted, and nothing is written.
#include "acl/acl_prof.h"
#include "runtime/checks.h"

struct aclprofConfig {};

EMU_NOTHING(aclprofFinalize)
EMU_NOTHING(MsprofGetHashId)
EMU_NOTHING(MsprofRegisterCallback)
EMU_NOTHING(MsprofReportAdditionalInfo)
EMU_NOTHING(MsprofReportApi)
EMU_NOTHING(MsprofReportCompactInfo)
EMU_C uint64_t MsprofSysCycleTime() { return static_cast<uint64_t>(emu::Clock::now().time_since_epoch().count()); }

EMU_C aclError aclprofInit(const char* profilerResultPath, size_t length) {
  EMU_ENTRY {
    emu::require(profilerResultPath, "profilerResultPath");
    if (length == 0) throw emu::Error{ACL_ERROR_INVALID_PARAM, "length is 0"};
  };
}

EMU_C aclprofConfig* aclprofCreateConfig(uint32_t* deviceIdList, uint32_t deviceNums, aclprofAicoreMetrics,
                                         const aclprofAicoreEvents*, uint64_t) {
  static emu::Entry entry(__func__);
  return entry.value([&] {
    if (deviceNums > 0) emu::require(deviceIdList, "deviceIdList");
    for (uint32_t i = 0; i < deviceNums; i++) emu::require_device(static_cast<int32_t>(deviceIdList[i]));
    return new aclprofConfig;
  });
}

EMU_C aclError aclprofDestroyConfig(const aclprofConfig* profilerConfig) {
  EMU_ENTRY {
    emu::require(profilerConfig, "profilerConfig");
    delete profilerConfig;
  };
}

EMU_C aclError aclprofStart(const aclprofConfig* profilerConfig)
EMU_DOES(emu::require(profilerConfig, "profilerConfig"))

EMU_C aclError aclprofStop(const aclprofConfig* profilerConfig) EMU_DOES(emu::require(profilerConfig, "profilerConfig"))
EMU_C aclError aclprofSetConfig(aclprofConfigType, const char* config, size_t) EMU_DOES(emu::require(config, "config"))
