// What the handles of acl_meta.h stand for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "aclnn/acl_meta.h"
#include "core/handles.h"

namespace emu {

using Dims = std::vector<int64_t>;

EMU_PUBLIC int64_t count_of(const Dims& dims);  // the product, INT64_MAX where it is more; 1 for no dims
EMU_PUBLIC std::string show(const Dims& dims);  // (2, 3)
EMU_PUBLIC const char* type_name(aclDataType type);

// A tensor with the arguments of aclCreateTensor. Strides and offset count elements from `address`.
struct EMU_PUBLIC TensorInfo {
  Dims shape, strides, storage;
  int64_t offset = 0;
  aclDataType type = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  void* address = nullptr;

  int64_t count() const { return count_of(shape); }
  bool empty() const { return count() == 0; }
  size_t rank() const { return shape.size(); }
  bool contiguous() const;
  std::string describe() const;  // float32(2, 3)
};

struct EMU_PUBLIC ScalarInfo {
  aclDataType type;
  double real = 0;      // the value of every type but the wide integers
  int64_t integer = 0;  // the value of integers, exactly
  double imaginary = 0;
  bool integral() const;
  float to_float() const;  // rounded once from the type the scalar has
};

struct ArrayInfo {
  std::vector<int64_t> values;  // of int and bool arrays
  std::vector<float> floats;
};

struct ListInfo {
  std::vector<const void*> members;
  bool tensors;
};

EMU_PUBLIC HandleTable<TensorInfo>& tensors();
EMU_PUBLIC HandleTable<ScalarInfo>& scalars();
EMU_PUBLIC HandleTable<ArrayInfo>& arrays();
EMU_PUBLIC HandleTable<ListInfo>& lists();

// The object of a handle that is not null; throws Error 561103 for one that was destroyed or never was one.
EMU_PUBLIC std::shared_ptr<TensorInfo> tensor_of(const aclTensor* handle, const char* parameter);
EMU_PUBLIC std::shared_ptr<ScalarInfo> scalar_of(const aclScalar* handle, const char* parameter);
EMU_PUBLIC std::shared_ptr<ArrayInfo> array_of(const void* handle, const char* parameter);

}  // namespace emu
