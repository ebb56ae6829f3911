// aclCreateTensor, aclDestroyTensor and what can be asked of a tensor.
#include <algorithm>

#include "core/entry.h"
#include "objects/objects.h"

using emu::Error;

namespace {

constexpr uint64_t kMaxRank = 25;  // of the real shape class

emu::Dims dims_of(const int64_t* values, uint64_t count, const char* parameter) {
  if (values == nullptr && count > 0)
    throw Error{ACLNN_ERR_PARAM_NULLPTR, emu::text("%s is null with %lu dims", parameter, count)};
  if (count > kMaxRank)
    throw Error{ACLNN_ERR_PARAM_INVALID, emu::text("%lu %s; a tensor has at most 25", count, parameter)};
  return emu::Dims(values, values + count);
}

emu::Dims contiguous_strides(const emu::Dims& shape) {
  emu::Dims strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = emu::count_of({strides[i], shape[i]});
  return strides;
}

void give(const emu::Dims& dims, int64_t** values, uint64_t* count) {
  if (values == nullptr || count == nullptr) throw Error{ACLNN_ERR_PARAM_NULLPTR, "an out-parameter is a null pointer"};
  *values = new int64_t[std::max<size_t>(dims.size(), 1)];
  std::copy(dims.begin(), dims.end(), *values);
  *count = dims.size();
}

std::shared_ptr<emu::TensorInfo> asked(const aclTensor* tensor, const void* out) {
  if (tensor == nullptr) throw Error{ACLNN_ERR_PARAM_NULLPTR, "tensor is a null pointer"};
  if (out == nullptr) throw Error{ACLNN_ERR_PARAM_NULLPTR, "an out-parameter is a null pointer"};
  return emu::tensor_of(tensor, "tensor");
}

}  // namespace

// What aclCreateTensor and aclInitTensor are told.
static emu::TensorInfo described(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                                 const int64_t* stride, int64_t offset, aclFormat format, const int64_t* storageDims,
                                 uint64_t storageDimsNum, void* tensorData) {
  emu::TensorInfo made;
  made.shape = dims_of(viewDims, viewDimsNum, "viewDims");
  made.strides = stride == nullptr ? contiguous_strides(made.shape) : dims_of(stride, viewDimsNum, "stride");
  made.storage = dims_of(storageDims, storageDimsNum, "storageDims");
  made.offset = offset;
  made.type = dataType;
  made.format = format;
  made.address = tensorData;
  return made;
}

EMU_C aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                                 const int64_t* stride, int64_t offset, aclFormat format, const int64_t* storageDims,
                                 uint64_t storageDimsNum, void* tensorData) {
  static emu::Entry entry(__func__);
  return static_cast<aclTensor*>(entry.value([&] {
    return emu::tensors().add(std::make_shared<emu::TensorInfo>(described(
        viewDims, viewDimsNum, dataType, stride, offset, format, storageDims, storageDimsNum, tensorData)));
  }));
}

EMU_C aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                                const int64_t* stride, int64_t offset, aclFormat format, const int64_t* storageDims,
                                uint64_t storageDimsNum, void* tensorDataAddr) {
  EMU_ENTRY {
    if (tensor == nullptr) throw Error{ACLNN_ERR_PARAM_NULLPTR, "tensor is a null pointer"};
    *emu::tensor_of(tensor, "tensor") = described(viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                                                  storageDimsNum, tensorDataAddr);
  };
}

EMU_C aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  EMU_ENTRY {
    if (tensor == nullptr) return;
    emu::tensor_of(tensor, "tensor");
    emu::tensors().remove(tensor);
  };
}

EMU_C aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum)
EMU_DOES(give(asked(tensor, viewDims)->shape, viewDims, viewDimsNum))

EMU_C aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims, uint64_t* storageDimsNum)
EMU_DOES(give(asked(tensor, storageDims)->storage, storageDims, storageDimsNum))

EMU_C aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue, uint64_t* stridesNum)
EMU_DOES(give(asked(tensor, stridesValue)->strides, stridesValue, stridesNum))

EMU_C aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset)
EMU_DOES(*offset = asked(tensor, offset)->offset)

EMU_C aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format)
EMU_DOES(*format = asked(tensor, format)->format)

EMU_C aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType)
EMU_DOES(*dataType = asked(tensor, dataType)->type)

EMU_C aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr)
EMU_DOES(*addr = asked(tensor, addr)->address)

EMU_C aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) EMU_DOES(asked(tensor, tensor)->address = addr)
