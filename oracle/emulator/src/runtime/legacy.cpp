// Functions that torch_npu must be able to bind but that aclnn programs never use: the older single-operator path,
// virtual memory, kernel loading, profiling. They refuse, or do the harmless nothing that the real ones do when off.
#include <cstring>

#include "acl/acl_rt.h"
#include "runtime/checks.h"

namespace {

int refuse(const char* name) {
  emu::say(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, emu::text("[%s] the emulated CANN does not have this function", name));
  return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
}

struct Opaque {};

}  // namespace

#define EMU_REFUSED(name) \
  EMU_C int name() { return refuse(#name); }
#define EMU_NOTHING(name) \
  EMU_C int name() { return ACL_SUCCESS; }
#define EMU_CREATED(name) \
  EMU_C void* name() { return new Opaque; }
#define EMU_DELETED(name) \
  EMU_C void name(void* made) { delete static_cast<Opaque*>(made); }

EMU_REFUSED(aclopCompileAndExecute)
EMU_REFUSED(aclrtBinaryGetFunction)
EMU_REFUSED(aclrtBinaryLoadFromData)
EMU_REFUSED(aclrtFreePhysical)
EMU_REFUSED(aclrtGetFunctionAddr)
EMU_REFUSED(aclrtMallocPhysical)
EMU_REFUSED(aclrtMapMem)
EMU_REFUSED(aclrtMemExportToShareableHandle)
EMU_REFUSED(aclrtMemImportFromShareableHandle)
EMU_REFUSED(aclrtMemSetPidToShareableHandle)
EMU_REFUSED(aclrtReleaseMemAddress)
EMU_REFUSED(aclrtReserveMemAddress)
EMU_REFUSED(aclrtUnmapMem)
EMU_REFUSED(aclrtDeviceGetBareTgid)
EMU_REFUSED(rtDevBinaryRegister)
EMU_REFUSED(rtFunctionRegister)
EMU_REFUSED(rtGetC2cCtrlAddr)
EMU_REFUSED(rtKernelLaunch)

EMU_CREATED(aclCreateDataBuffer)
EMU_CREATED(aclCreateTensorDesc)
EMU_CREATED(aclopCreateAttr)
EMU_DELETED(aclDestroyTensorDesc)
EMU_DELETED(aclopDestroyAttr)
EMU_C int aclDestroyDataBuffer(void* made) {
  delete static_cast<Opaque*>(made);
  return ACL_SUCCESS;
}
EMU_NOTHING(aclGetTensorDescDimV2)
EMU_NOTHING(aclGetTensorDescFormat)
EMU_NOTHING(aclGetTensorDescNumDims)
EMU_NOTHING(aclGetTensorDescType)
EMU_NOTHING(aclSetTensorDescName)
EMU_NOTHING(aclSetTensorFormat)
EMU_NOTHING(aclSetTensorPlaceMent)
EMU_NOTHING(aclSetTensorShape)
EMU_NOTHING(aclopSetAttrBool)
EMU_NOTHING(aclopSetAttrDataType)
EMU_NOTHING(aclopSetAttrFloat)
EMU_NOTHING(aclopSetAttrInt)
EMU_NOTHING(aclopSetAttrListBool)
EMU_NOTHING(aclopSetAttrListFloat)
EMU_NOTHING(aclopSetAttrListInt)
EMU_NOTHING(aclopSetAttrListListInt)
EMU_NOTHING(aclopSetAttrString)

EMU_NOTHING(MsprofGetHashId)
EMU_NOTHING(MsprofRegisterCallback)
EMU_NOTHING(MsprofReportAdditionalInfo)
EMU_NOTHING(MsprofReportApi)
EMU_NOTHING(MsprofReportCompactInfo)
EMU_C uint64_t MsprofSysCycleTime() { return static_cast<uint64_t>(emu::Clock::now().time_since_epoch().count()); }
EMU_NOTHING(aclAppLog)
EMU_NOTHING(aclmdlFinalizeDump)
EMU_NOTHING(aclmdlInitDump)
EMU_NOTHING(aclmdlSetDump)
EMU_NOTHING(aclrtProcessReport)
EMU_NOTHING(aclrtSetDeviceSatMode)

// The compile options: "disable" for JIT compilation is what makes torch_npu use aclnn.
EMU_C size_t aclGetCompileoptSize(int) { return sizeof "disable"; }
EMU_C aclError aclGetCompileopt(int, char* value, size_t length) {
  if (value == nullptr || length < sizeof "disable") return ACL_ERROR_INVALID_PARAM;
  strcpy(value, "disable");
  return ACL_SUCCESS;
}
EMU_NOTHING(aclSetCompileopt)
EMU_NOTHING(HcclSetConfig)
