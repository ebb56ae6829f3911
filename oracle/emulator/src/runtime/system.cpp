// What a program may ask about the system: SoC, versions, options, capabilities, errors.
#include <atomic>
#include <cstring>

#include "acl/acl_rt.h"
#include "core/soc.h"
#include "runtime/checks.h"

namespace {

constexpr const char* kCannVersion = "8.5.0";  // torch_npu decides by it which functions it uses
std::atomic<int64_t> options[4];

std::atomic<int64_t>& option(aclSysParamOpt opt) {
  if (opt < 0 || opt > ACL_OPT_ENABLE_KERNEL_EARLY_START) {
    throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, emu::text("option %d is unknown", static_cast<int>(opt))};
  }
  return options[opt];
}

}  // namespace

EMU_C const char* aclGetRecentErrMsg() { return emu::recent_messages(); }

EMU_C const char* aclrtGetSocName() {
  static emu::Entry entry(__func__);
  return entry.value([] { return emu::soc().device; });
}

EMU_C aclError aclrtGetRunMode(aclrtRunMode* runMode) EMU_GIVES(runMode, ACL_HOST)

EMU_C aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  EMU_ENTRY {
    emu::require(majorVersion, "majorVersion");
    emu::require(minorVersion, "minorVersion");
    emu::require(patchVersion, "patchVersion");
    *majorVersion = 1, *minorVersion = 17, *patchVersion = 0;
  };
}

EMU_C aclError aclsysGetCANNVersion(aclCANNPackageName, aclCANNPackageVersion* version) {
  EMU_ENTRY {
    emu::require(version, "version");
    memset(version, 0, sizeof *version);
    strcpy(version->version, kCannVersion);
    strcpy(version->majorVersion, "8");
    strcpy(version->minorVersion, "5");
    strcpy(version->releaseVersion, "0");
  };
}

EMU_C aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
  EMU_ENTRY {
    emu::require(pkgName, "pkgName");
    emu::require(versionStr, "versionStr");
    strcpy(versionStr, kCannVersion);
  };
}

EMU_C aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  EMU_ENTRY {
    emu::require(value, "value");
    *value = cannAttr == ACL_CANN_ATTR_INF_NAN ? !emu::soc().saturates
             : cannAttr == ACL_CANN_ATTR_BF16  ? emu::soc().bfloat16
                                               : 0;
  };
}

EMU_C aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num) {
  EMU_ENTRY {
    emu::require(cannAttrList, "cannAttrList");
    emu::require(num, "num");
    static const aclCannAttr both[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16};
    *cannAttrList = both;
    *num = emu::soc().saturates ? 0 : 2;
  };
}

EMU_C aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) EMU_DOES(option(opt) = value)
EMU_C aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) EMU_GIVES(value, option(opt))

EMU_C aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  EMU_ENTRY {
    option(opt);
    auto context = emu::current_context();
    std::lock_guard<std::mutex> hold(context->lock);
    context->options[opt] = value;
  };
}

EMU_C aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  EMU_ENTRY {
    emu::require(value, "value");
    auto context = emu::current_context();
    std::lock_guard<std::mutex> hold(context->lock);
    auto found = context->options.find(opt);
    *value = found != context->options.end() ? found->second : option(opt).load();
  };
}

EMU_C aclError aclrtGetLastError(aclrtLastErrLevel) { return emu::last_error(true); }
EMU_C aclError aclrtPeekAtLastError(aclrtLastErrLevel) { return emu::last_error(false); }

EMU_C aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t* value) {
  EMU_ENTRY {
    emu::require(value, "value");
    emu::require_device(static_cast<int32_t>(deviceId));
    switch (deviceInfo) {
      case ACL_DEVICE_INFO_AI_CORE_NUM:
        *value = emu::soc().cores;
        break;
      case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
        *value = 2 * emu::soc().cores;
        break;
      case ACL_DEVICE_INFO_L2_SIZE:
        *value = emu::soc().l2_bytes;
        break;
      default:
        throw emu::Error{ACL_ERROR_INVALID_PARAM, emu::text("deviceInfo %d is unknown", static_cast<int>(deviceInfo))};
    }
  };
}

// How many cores the thread's kernels may use: nobody can limit them here.
EMU_C aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  EMU_ENTRY {
    emu::require(value, "value");
    emu::current_context();
    if (type != ACL_RT_DEV_RES_CUBE_CORE && type != ACL_RT_DEV_RES_VECTOR_CORE)
      throw emu::Error{ACL_ERROR_RT_PARAM_INVALID, emu::text("type is %d; it must be 0 or 1", static_cast<int>(type))};
    *value = static_cast<uint32_t>(emu::soc().cores) * (type == ACL_RT_DEV_RES_VECTOR_CORE ? 2 : 1);
  };
}

EMU_C aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) {
  EMU_ENTRY {
    emu::require(value, "value");
    emu::require_device(static_cast<int32_t>(deviceId));
    switch (static_cast<int>(attr)) {
      case ACL_DEV_ATTR_AICPU_CORE_NUM:
        *value = 4;
        break;
      case ACL_DEV_ATTR_AICORE_CORE_NUM:
      case ACL_DEV_ATTR_CUBE_CORE_NUM:
        *value = emu::soc().cores;
        break;
      case ACL_DEV_ATTR_VECTOR_CORE_NUM:
        *value = 2 * emu::soc().cores;
        break;
      case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
        *value = static_cast<int64_t>(emu::memory_of(static_cast<int>(deviceId)).total());
        break;
      case ACL_DEV_ATTR_L2_CACHE_SIZE:
        *value = emu::soc().l2_bytes;
        break;
      default:
        throw emu::Error{ACL_ERROR_RT_FEATURE_NOT_SUPPORT, emu::text("attr %d is not known here", attr)};
    }
  };
}

EMU_C aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus) {
  EMU_ENTRY {
    emu::require(deviceStatus, "deviceStatus");
    emu::require_device(deviceId);
    *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
  };
}

EMU_C aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo* errorInfo) {
  EMU_ENTRY {
    emu::require(errorInfo, "errorInfo");
    emu::require_device(deviceId);
    memset(errorInfo, 0, sizeof *errorInfo);
    auto context = emu::current_context();
    int code = context->fault().code;
    bool core = code >= ACL_ERROR_RT_AICORE_TIMEOUT && code <= ACL_ERROR_RT_VECTOR_CORE_EXCEPTION;
    errorInfo->errorType = code == 0 ? ACL_RT_NO_ERROR : core ? ACL_RT_ERROR_AICORE : ACL_RT_ERROR_OTHERS;
    errorInfo->hasDetail = core;
    if (core) errorInfo->detail.aicoreErrType = ACL_RT_AICORE_ERROR_SW;
  };
}

EMU_C aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum) {
  EMU_ENTRY {
    emu::require(pkgName, "pkgName");
    emu::require(versionNum, "versionNum");
    *versionNum = 80500000;
  };
}

EMU_C size_t aclDataTypeSize(aclDataType dataType) {
  switch (dataType) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
      return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
      return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
      return 4;
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE:
    case ACL_COMPLEX64:
      return 8;
    case ACL_COMPLEX128:
    case ACL_STRING:
      return 16;
    default:
      return 0;
  }
}
