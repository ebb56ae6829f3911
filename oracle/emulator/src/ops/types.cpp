#include "ops/types.h"

#include <algorithm>

namespace emu {
namespace {

bool is_unsigned_wide(aclDataType type) { return type == ACL_UINT16 || type == ACL_UINT32 || type == ACL_UINT64; }

// The types with entries in the table. The wide unsigned ones have nearly none, the 4-bit ones and strings none.
bool is_listed(aclDataType type) {
  return type == ACL_BOOL || is_float(type) || is_complex(type) ||
         (is_integer(type) && !is_unsigned_wide(type) && type != ACL_INT4 && type != ACL_UINT1);
}

// Beyond the table's initialisers: zero, which is float32.
bool is_beyond(aclDataType type) { return type >= ACL_HIFLOAT8 && type <= ACL_FLOAT4_E1M2; }

aclDataType promote_integers(aclDataType a, aclDataType b) {
  if (a == ACL_BOOL) return b;
  if (b == ACL_BOOL) return a;
  size_t size_a = aclDataTypeSize(a), size_b = aclDataTypeSize(b);
  if (size_a == size_b) return ACL_INT16;  // int8 and uint8
  return size_a > size_b ? a : b;
}

aclDataType promote_floats(aclDataType a, aclDataType b) {
  return a == ACL_DOUBLE || b == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;  // float16 and bfloat16 too
}

// A complex type with any listed one.
aclDataType promote_complex(aclDataType a, aclDataType b) {
  for (aclDataType each : {a, b}) {
    if (each == ACL_COMPLEX128 || each == ACL_DOUBLE) return ACL_COMPLEX128;
  }
  for (aclDataType each : {a, b}) {
    if (each == ACL_COMPLEX64 || each == ACL_FLOAT || each == ACL_BF16) return ACL_COMPLEX64;
  }
  return ACL_COMPLEX32;
}

// The few entries of the wide unsigned types. The reversed order has none.
aclDataType promote_unsigned(aclDataType a, aclDataType b) {
  if (!is_unsigned_wide(a) || (b != ACL_COMPLEX64 && b != ACL_COMPLEX128)) return ACL_DT_UNDEFINED;
  return a == ACL_UINT64 ? ACL_COMPLEX128 : b;
}

}  // namespace

bool is_float(aclDataType type) {
  return type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16 || type == ACL_DOUBLE;
}

bool is_complex(aclDataType type) {
  return type == ACL_COMPLEX32 || type == ACL_COMPLEX64 || type == ACL_COMPLEX128;
}

bool is_integer(aclDataType type) {
  constexpr aclDataType kIntegers[] = {ACL_INT8,   ACL_INT16,  ACL_INT32,  ACL_INT64, ACL_UINT8,
                                       ACL_UINT16, ACL_UINT32, ACL_UINT64, ACL_INT4,  ACL_UINT1};
  return std::find(std::begin(kIntegers), std::end(kIntegers), type) != std::end(kIntegers);
}

bool can_cast(aclDataType from, aclDataType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  // IsIntegralType of opbase does not count the types of less than a byte
  if (is_float(from) && is_integer(to) && to != ACL_INT4 && to != ACL_UINT1) return false;
  return from == ACL_BOOL || to != ACL_BOOL;
}

aclDataType promote(aclDataType a, aclDataType b) {
  if (a == b) return a;
  if (is_beyond(a) || is_beyond(b))
    return (is_beyond(a) || is_listed(a)) && (is_beyond(b) || is_listed(b)) ? ACL_FLOAT : ACL_DT_UNDEFINED;
  if (is_unsigned_wide(a) || is_unsigned_wide(b)) return promote_unsigned(a, b);
  if (!is_listed(a) || !is_listed(b)) return ACL_DT_UNDEFINED;
  if (is_complex(a) || is_complex(b)) return promote_complex(a, b);
  if (is_float(a) && is_float(b)) return promote_floats(a, b);
  if (is_float(a) || is_float(b)) return is_float(a) ? a : b;
  return promote_integers(a, b);
}

}  // namespace emu
