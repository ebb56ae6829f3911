// Scalars, arrays and lists.
#include <algorithm>
#include <cstring>

#include "core/entry.h"
#include "objects/objects.h"
#include "ops/numeric.h"

using emu::Error;

namespace {

void read_scalar(emu::ScalarInfo& s, const void* value) {
  aclDataType part = s.type == ACL_COMPLEX64 ? ACL_FLOAT : s.type == ACL_COMPLEX128 ? ACL_DOUBLE : s.type;
  bool known = emu::with_stored(part, [&](auto stored) {
    decltype(stored) parts[2] = {};
    memcpy(parts, value, part == s.type ? sizeof stored : sizeof parts);
    s.real = static_cast<double>(emu::number_of(parts[0]));
    s.integer = emu::cast<int64_t>(emu::number_of(parts[0]));
    if (part != s.type) s.imaginary = static_cast<double>(emu::number_of(parts[1]));
  });
  if (!known) throw Error{ACLNN_ERR_PARAM_INVALID, emu::text("a scalar of %s", emu::type_name(s.type))};
}

void require_values(const void* value, uint64_t size) {
  if (value == nullptr && size > 0)
    throw Error{ACLNN_ERR_PARAM_NULLPTR, emu::text("value is null with size %lu", size)};
}

template <class Handle, class T>
Handle* create_array(emu::Entry& entry, const T* value, uint64_t size) {
  return static_cast<Handle*>(entry.value([&] {
    require_values(value, size);
    auto made = std::make_shared<emu::ArrayInfo>();
    if constexpr (std::is_same_v<T, float>)
      made->floats.assign(value, value + size);
    else
      made->values.assign(value, value + size);
    return emu::arrays().add(std::move(made));
  }));
}

void destroy_array(const void* array) {
  if (array == nullptr) return;
  emu::array_of(array, "array");
  emu::arrays().remove(array);
}

template <class Handle, class Member>
Handle* create_list(emu::Entry& entry, const Member* const* value, uint64_t size, bool tensors) {
  return static_cast<Handle*>(entry.value([&] {
    require_values(value, size);
    auto made = std::make_shared<emu::ListInfo>();
    made->tensors = tensors;
    for (uint64_t i = 0; i < size; i++) made->members.push_back(value[i]);
    return emu::lists().add(std::move(made));
  }));
}

// Destroys the members too, as the real one does.
void destroy_list(const void* handle) {
  if (handle == nullptr) return;
  auto list = emu::lists().remove(handle);
  if (list == nullptr) throw Error{ACLNN_ERR_INNER_NULLPTR, emu::text("%p is no list, or was destroyed", handle)};
  for (const void* member : list->members) {
    if (list->tensors)
      emu::tensors().remove(member);
    else
      emu::scalars().remove(member);
  }
}

void give_size(const void* handle, uint64_t* size, const char* parameter, uint64_t count) {
  if (handle == nullptr || size == nullptr)
    throw Error{ACLNN_ERR_PARAM_NULLPTR, emu::text("%s or size is a null pointer", parameter)};
  *size = count;
}

uint64_t length_of_array(const void* array) {
  if (array == nullptr) return 0;
  auto found = emu::array_of(array, "array");
  return std::max(found->values.size(), found->floats.size());
}

uint64_t length_of_list(const void* list) {
  if (list == nullptr) return 0;
  auto found = emu::lists().find(list);
  if (found == nullptr) throw Error{ACLNN_ERR_INNER_NULLPTR, emu::text("%p is no list, or was destroyed", list)};
  return found->members.size();
}

}  // namespace

EMU_C aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  static emu::Entry entry(__func__);
  return static_cast<aclScalar*>(entry.value([&] {
    require_values(value, 1);
    auto made = std::make_shared<emu::ScalarInfo>();
    made->type = dataType;
    read_scalar(*made, value);
    return emu::scalars().add(std::move(made));
  }));
}

EMU_C aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  EMU_ENTRY {
    if (scalar == nullptr) return;
    emu::scalar_of(scalar, "scalar");
    emu::scalars().remove(scalar);
  };
}

// What creates a container, destroys it, and gives its size.
#define EMU_ARRAY(kind, type)                                                                \
  EMU_C acl##kind##Array* aclCreate##kind##Array(const type* value, uint64_t size) {         \
    static emu::Entry entry(__func__);                                                       \
    return create_array<acl##kind##Array>(entry, value, size);                               \
  }                                                                                          \
  EMU_C aclnnStatus aclDestroy##kind##Array(const acl##kind##Array* array) {                 \
    EMU_ENTRY { destroy_array(array); };                                                     \
  }                                                                                          \
  EMU_C aclnnStatus aclGet##kind##ArraySize(const acl##kind##Array* array, uint64_t* size) { \
    EMU_ENTRY { give_size(array, size, "array", length_of_array(array)); };                  \
  }
#define EMU_LIST(kind, are_tensors)                                                            \
  EMU_C acl##kind##List* aclCreate##kind##List(const acl##kind* const* value, uint64_t size) { \
    static emu::Entry entry(__func__);                                                         \
    return create_list<acl##kind##List>(entry, value, size, are_tensors);                      \
  }                                                                                            \
  EMU_C aclnnStatus aclDestroy##kind##List(const acl##kind##List* array) {                     \
    EMU_ENTRY { destroy_list(array); };                                                        \
  }                                                                                            \
  EMU_C aclnnStatus aclGet##kind##ListSize(const acl##kind##List* list, uint64_t* size) {      \
    EMU_ENTRY { give_size(list, size, "list", length_of_list(list)); };                        \
  }

EMU_ARRAY(Int, int64_t)
EMU_ARRAY(Float, float)
EMU_ARRAY(Bool, bool)
EMU_LIST(Tensor, true)
EMU_LIST(Scalar, false)
