// Small values that programs convert and wrap: float16, data buffers.
#include "acl/acl_base.h"
#include "ops/numeric.h"
#include "runtime/checks.h"

struct aclDataBuffer {
  void* data;
  size_t size;
};

EMU_C float aclFloat16ToFloat(aclFloat16 value) { return emu::half_to_float(value); }
EMU_C aclFloat16 aclFloatToFloat16(float value) { return emu::float_to_half(value); }

EMU_C aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) { return new aclDataBuffer{data, size}; }

EMU_C aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  EMU_ENTRY {
    emu::require(dataBuffer, "dataBuffer");
    delete dataBuffer;
  };
}

EMU_C aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size)
EMU_GIVES(dataBuffer, {data, size})

EMU_C void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) { return dataBuffer ? dataBuffer->data : nullptr; }
EMU_C size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) { return dataBuffer ? dataBuffer->size : 0; }
EMU_C uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer) {
  return dataBuffer ? static_cast<uint32_t>(dataBuffer->size) : 0;
}
