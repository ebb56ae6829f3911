// Rules that the first phases of several operators share (opbase, op_error_check.h and data_type_utils.h).
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/op.h"

namespace emu {

// float16, float32 and, where the SoC has it, bfloat16.
inline bool supported_float(aclDataType type) {
  return type == ACL_FLOAT || type == ACL_FLOAT16 || (type == ACL_BF16 && soc().bfloat16);
}

inline void check_supported_float(const Tensor& t) {
  check(supported_float(t.type), "%s has dtype %s; %s supports float16, float32%s", t.name, type_name(t.type),
        soc().soc, soc().bfloat16 ? ", bfloat16" : "");
}

inline void check_same_type(const Tensor& t, const Tensor& as) {
  check(t.type == as.type, "%s has dtype %s, %s has %s", t.name, type_name(t.type), as.name, type_name(as.type));
}

inline void check_same_shape(const Tensor& t, const Tensor& as) {
  check(t.shape == as.shape, "%s has shape %s, %s has %s", t.name, show(t.shape).c_str(), as.name,
        show(as.shape).c_str());
}

inline void check_rank(const Tensor& t, size_t most) {
  check(t.rank() <= most, "%s has rank %zu, more than %zu", t.name, t.rank(), most);
}

inline void check_reduction(int64_t reduction) {
  check(reduction >= 0 && reduction <= 2, "reduction is %ld; it must be 0 (none), 1 (mean) or 2 (sum)",
        static_cast<long>(reduction));
}

// Whether broadcasting both gives `to` itself: right-aligned, every dim equal or 1 in `from`.
inline bool broadcasts_to(const Dims& from, const Dims& to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 0; i < from.size(); i++) {
    if (from[i] != 1 && from[i] != to[to.size() - from.size() + i]) return false;
  }
  return true;
}

inline bool is_integer(aclDataType type) {
  switch (type) {
    case ACL_INT8:
    case ACL_INT16:
    case ACL_INT32:
    case ACL_INT64:
    case ACL_UINT8:
    case ACL_UINT16:
    case ACL_UINT32:
    case ACL_UINT64:
    case ACL_INT4:
    case ACL_UINT1:
      return true;
    default:
      return false;
  }
}

// CanCast of the host code; bool is no integer there.
inline bool can_cast(aclDataType from, aclDataType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_float(from) && is_integer(to)) return false;
  return from == ACL_BOOL || to != ACL_BOOL;
}

// The common type of two of float16, bfloat16 and float32.
inline aclDataType promote(aclDataType a, aclDataType b) { return a == b ? a : ACL_FLOAT; }

}  // namespace emu
