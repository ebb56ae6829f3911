#include "objects/objects.h"

#include <map>

#include "core/error.h"
#include "ops/types.h"

namespace emu {
namespace {

const LiveCount kCounts[] = {
    {"tensors", [] { return tensors().size(); }},
    {"scalars", [] { return scalars().size(); }},
    {"arrays", [] { return arrays().size(); }},
    {"lists", [] { return lists().size(); }},
};

template <class T>
std::shared_ptr<T> found(HandleTable<T>& table, const void* handle, const char* parameter, const char* what) {
  auto object = table.find(handle);
  if (object == nullptr)
    misused(ACLNN_ERR_INNER_NULLPTR, text("%s: %p is no %s, or was destroyed", parameter, handle, what));
  return object;
}

}  // namespace

int64_t count_of(const Dims& dims) {
  int64_t product = 1;
  bool fits = true;
  for (int64_t dim : dims) {
    if (dim == 0) return 0;
    fits = fits && !__builtin_mul_overflow(product, dim, &product);
  }
  return fits ? product : INT64_MAX;
}

std::string show(const Dims& dims) {
  std::string out = "(";
  for (size_t i = 0; i < dims.size(); i++) out += (i > 0 ? ", " : "") + std::to_string(dims[i]);
  return out + (dims.size() == 1 ? ",)" : ")");
}

const char* type_name(aclDataType type) {
  static const auto& names = *new std::map<aclDataType, const char*>{
      {ACL_FLOAT, "float32"}, {ACL_FLOAT16, "float16"}, {ACL_INT8, "int8"}, {ACL_INT32, "int32"},
      {ACL_UINT8, "uint8"}, {ACL_INT16, "int16"}, {ACL_UINT16, "uint16"}, {ACL_UINT32, "uint32"},
      {ACL_INT64, "int64"}, {ACL_UINT64, "uint64"}, {ACL_DOUBLE, "float64"}, {ACL_BOOL, "bool"},
      {ACL_STRING, "string"}, {ACL_COMPLEX64, "complex64"}, {ACL_COMPLEX128, "complex128"}, {ACL_BF16, "bfloat16"},
      {ACL_INT4, "int4"}, {ACL_UINT1, "uint1"}, {ACL_COMPLEX32, "complex32"}, {ACL_HIFLOAT8, "hifloat8"},
      {ACL_FLOAT8_E5M2, "float8_e5m2"}, {ACL_FLOAT8_E4M3FN, "float8_e4m3fn"}, {ACL_FLOAT8_E8M0, "float8_e8m0"},
      {ACL_FLOAT6_E3M2, "float6_e3m2"}, {ACL_FLOAT6_E2M3, "float6_e2m3"}, {ACL_FLOAT4_E2M1, "float4_e2m1"},
      {ACL_FLOAT4_E1M2, "float4_e1m2"},
  };
  auto found = names.find(type);
  return found == names.end() ? "undefined" : found->second;
}

bool TensorInfo::contiguous() const {
  for (size_t i = 0; i < shape.size(); i++) {
    if (shape[i] != 1 && strides[i] != count_of(Dims(shape.begin() + static_cast<std::ptrdiff_t>(i) + 1, shape.end())))
      return false;
  }
  return true;
}

std::string TensorInfo::describe() const {
  std::string out = type_name(type) + show(shape);
  if (!contiguous()) out += " strides " + show(strides);
  if (offset != 0) out += " offset " + std::to_string(offset);
  if (format != ACL_FORMAT_ND) out += " format " + std::to_string(format);
  return out;
}

bool ScalarInfo::integral() const { return is_integer(type) || type == ACL_BOOL; }

float ScalarInfo::to_float() const {
  if (type == ACL_UINT64) return static_cast<float>(static_cast<uint64_t>(integer));
  return integral() ? static_cast<float>(integer) : static_cast<float>(real);
}

HandleTable<TensorInfo>& tensors() { return immortal<HandleTable<TensorInfo>>(); }
HandleTable<ScalarInfo>& scalars() { return immortal<HandleTable<ScalarInfo>>(); }
HandleTable<ArrayInfo>& arrays() { return immortal<HandleTable<ArrayInfo>>(); }
HandleTable<ListInfo>& lists() { return immortal<HandleTable<ListInfo>>(); }

std::shared_ptr<TensorInfo> tensor_of(const aclTensor* handle, const char* parameter) {
  return found(tensors(), handle, parameter, "aclTensor");
}
std::shared_ptr<ScalarInfo> scalar_of(const aclScalar* handle, const char* parameter) {
  return found(scalars(), handle, parameter, "aclScalar");
}
std::shared_ptr<ArrayInfo> array_of(const void* handle, const char* parameter) {
  return found(arrays(), handle, parameter, "array");
}

}  // namespace emu
