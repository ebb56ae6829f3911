#include "objects/objects.h"

#include "core/error.h"

namespace emu {
namespace {

struct Register {
  Register() {
    register_live_count("tensors", [] { return tensors().size(); });
    register_live_count("scalars", [] { return scalars().size(); });
    register_live_count("arrays", [] { return arrays().size(); });
    register_live_count("lists", [] { return lists().size(); });
  }
} registered;

template <class T>
std::shared_ptr<T> found(HandleTable<T>& table, const void* handle, const char* parameter, const char* what) {
  auto object = table.find(handle);
  if (object == nullptr) {
    misuse(text("%s: %p is no %s, or was destroyed", parameter, handle, what));
    throw Error{ACLNN_ERR_INNER_NULLPTR, text("%s: %p is no %s, or was destroyed", parameter, handle, what)};
  }
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
  switch (type) {
    case ACL_FLOAT:
      return "float32";
    case ACL_FLOAT16:
      return "float16";
    case ACL_INT8:
      return "int8";
    case ACL_INT32:
      return "int32";
    case ACL_UINT8:
      return "uint8";
    case ACL_INT16:
      return "int16";
    case ACL_UINT16:
      return "uint16";
    case ACL_UINT32:
      return "uint32";
    case ACL_INT64:
      return "int64";
    case ACL_UINT64:
      return "uint64";
    case ACL_DOUBLE:
      return "float64";
    case ACL_BOOL:
      return "bool";
    case ACL_STRING:
      return "string";
    case ACL_COMPLEX64:
      return "complex64";
    case ACL_COMPLEX128:
      return "complex128";
    case ACL_BF16:
      return "bfloat16";
    case ACL_INT4:
      return "int4";
    case ACL_UINT1:
      return "uint1";
    case ACL_COMPLEX32:
      return "complex32";
    case ACL_HIFLOAT8:
      return "hifloat8";
    case ACL_FLOAT8_E5M2:
      return "float8_e5m2";
    case ACL_FLOAT8_E4M3FN:
      return "float8_e4m3fn";
    case ACL_FLOAT8_E8M0:
      return "float8_e8m0";
    case ACL_FLOAT6_E3M2:
      return "float6_e3m2";
    case ACL_FLOAT6_E2M3:
      return "float6_e2m3";
    case ACL_FLOAT4_E2M1:
      return "float4_e2m1";
    case ACL_FLOAT4_E1M2:
      return "float4_e1m2";
    default:
      return "undefined";
  }
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

bool ScalarInfo::integral() const {
  switch (type) {
    case ACL_INT8:
    case ACL_INT16:
    case ACL_INT32:
    case ACL_INT64:
    case ACL_UINT8:
    case ACL_UINT16:
    case ACL_UINT32:
    case ACL_UINT64:
    case ACL_BOOL:
      return true;
    default:
      return false;
  }
}

float ScalarInfo::to_float() const {
  if (type == ACL_UINT64) return static_cast<float>(static_cast<uint64_t>(integer));
  return integral() ? static_cast<float>(integer) : static_cast<float>(real);
}

HandleTable<TensorInfo>& tensors() {
  static auto& table = *new HandleTable<TensorInfo>;
  return table;
}
HandleTable<ScalarInfo>& scalars() {
  static auto& table = *new HandleTable<ScalarInfo>;
  return table;
}
HandleTable<ArrayInfo>& arrays() {
  static auto& table = *new HandleTable<ArrayInfo>;
  return table;
}
HandleTable<ListInfo>& lists() {
  static auto& table = *new HandleTable<ListInfo>;
  return table;
}

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
