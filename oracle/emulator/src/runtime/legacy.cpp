// Functions that torch_npu must be able to bind but that aclnn programs never use: the older single-operator path,
// virtual memory, kernel loading. They refuse, or do the harmless nothing that the real ones do when off.
#include <cstring>

#include "acl/acl_rt.h"
#include "core/soc.h"
#include "runtime/checks.h"

namespace {

struct Opaque {};

}  // namespace

#define EMU_REFUSED(name) \
  EMU_C int name()        \
  EMU_DOES(throw emu::Error{ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "the emulated CANN does not have this function"})
#define EMU_CREATED(name) \
  EMU_C void* name() { return new Opaque; }
#define EMU_DELETED(name) \
  EMU_C void name(void* made) { delete static_cast<Opaque*>(made); }

// Where torch_npu finds no aclnn function of an operator it takes this older interface, on a thread of its own. A
// status would reach nobody there and would end that thread: later copies would return without copying, and events would
// never come. So the call is accepted, writes nothing, and the next synchronisation refuses it.
EMU_C int aclopCompileAndExecute(const char* opType, int, const void* const*, const void* const*, int,
                                 const void* const*, void* const*, const void*, int, int, const char*,
                                 aclrtStream stream) {
  EMU_ENTRY {
    emu::stream_of(stream)->context()->refuse_later(
        emu::text("aclopCompileAndExecute: this is the emulated CANN, no NPU, and it does not have this function: "
                  "operator %s is not served through the older interface (aclop). docs/emulator.md lists what is "
                  "served. Nothing was run: what it was to write has no values",
                  opType == nullptr ? "(null)" : opType));
  };
}

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

EMU_CREATED(aclCreateTensorDesc)
EMU_CREATED(aclopCreateAttr)
EMU_DELETED(aclDestroyTensorDesc)
EMU_DELETED(aclopDestroyAttr)
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

EMU_NOTHING(aclAppLog)
EMU_NOTHING(aclmdlFinalizeDump)
EMU_NOTHING(aclmdlInitDump)
EMU_NOTHING(aclmdlSetDump)
EMU_NOTHING(aclrtSetDeviceSatMode)

// The one compile option that torch_npu asks for is whether operators are compiled when called: with "disable" it calls
// aclnn. The defaults are those of torch_npu's documentation (set_compile_mode): on before Atlas A2, off since.
static const char* jit_compile() { return emu::soc().jit ? "enable" : "disable"; }
EMU_C size_t aclGetCompileoptSize(int) {
  static emu::Entry entry(__func__);
  return entry.value([] { return strlen(jit_compile()) + 1; });
}
EMU_C aclError aclGetCompileopt(int, char* value, size_t length) {
  EMU_ENTRY {
    emu::require(value, "value");
    if (length <= strlen(jit_compile())) throw emu::Error{ACL_ERROR_INVALID_PARAM, emu::text("length is %zu", length)};
    strcpy(value, jit_compile());
  };
}
EMU_NOTHING(aclSetCompileopt)
EMU_NOTHING(HcclSetConfig)
