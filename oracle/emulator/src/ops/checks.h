// Rules that the first phases of several operators share (opbase, op_error_check.h and data_type_utils.h).
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/op.h"
#include "ops/types.h"

namespace emu {

// float16, float32 and, where the SoC has it, bfloat16.
inline bool supported_float(aclDataType type) {
  return type == ACL_FLOAT || type == ACL_FLOAT16 || (type == ACL_BF16 && soc().bfloat16);
}

inline void check_supported_float(const Tensor& t) {
  check(supported_float(t.type), "%s has dtype %s; %s supports float16, float32%s", t.name, type_name(t.type),
        soc().soc, soc().bfloat16 ? ", bfloat16" : "");
}

inline void check_supported_float_or_double(const Tensor& t) {
  if (t.type != ACL_DOUBLE) check_supported_float(t);
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

inline void check_dim(int64_t dim, size_t rank) {
  int64_t r = rank == 0 ? 1 : static_cast<int64_t>(rank);
  check(dim >= -r && dim < r, "dim is %ld; it must be in [%ld, %ld]", static_cast<long>(dim), static_cast<long>(-r),
        static_cast<long>(r - 1));
}

enum Reduction : int64_t { kNone, kMean, kSum, kBatchMean };

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

// The shape two shapes broadcast to: right-aligned, dims equal or one of them 1 (1 and 0 give 0); 161002 if there is
// none.
inline Dims broadcast_shape(const Tensor& a, const Tensor& b) {
  size_t rank = std::max(a.rank(), b.rank());
  Dims out(rank);
  for (size_t i = 0; i < rank; i++) {
    int64_t da = i + a.rank() < rank ? 1 : a.shape[i + a.rank() - rank],
            db = i + b.rank() < rank ? 1 : b.shape[i + b.rank() - rank];
    check(da == db || da == 1 || db == 1, "%s %s and %s %s do not broadcast", a.name, show(a.shape).c_str(), b.name,
          show(b.shape).c_str());
    out[i] = da == 1 ? db : da;
  }
  return out;
}

inline void check_shape(const Tensor& t, const Dims& shape) {
  check(t.shape == shape, "%s has shape %s; it must be %s", t.name, show(t.shape).c_str(), show(shape).c_str());
}

// What is computed in `from` must have a cast to `to`'s dtype.
inline void check_can_cast(const char* name, aclDataType from, const Tensor& to) {
  check(can_cast(from, to.type), "%s has dtype %s, which cannot be cast to %s's %s", name, type_name(from), to.name,
        type_name(to.type));
}

inline void check_type_in(const char* name, aclDataType type, std::initializer_list<aclDataType> list) {
  if (std::find(list.begin(), list.end(), type) != list.end()) return;
  std::string known;
  for (aclDataType each : list) known += std::string(known.empty() ? "" : ", ") + type_name(each);
  check(false, "%s has dtype %s; supported: %s", name, type_name(type), known.c_str());
}

inline void check_type_in(const Tensor& t, std::initializer_list<aclDataType> list) {
  check_type_in(t.name, t.type, list);
}

// The type two tensors are computed in; 161002 if PromoteType has none.
inline aclDataType promoted(const Tensor& a, const Tensor& b) {
  aclDataType type = promote(a.type, b.type);
  check(type != ACL_DT_UNDEFINED, "%s %s and %s %s have no common dtype", a.name, type_name(a.type), b.name,
        type_name(b.type));
  return type;
}

// The kernel of a call without elements: one value everywhere.
inline void queue_fill(Op& op, const Tensor& out, double value) {
  op.kernel([=](Run& run) { write(run.open(out), std::vector<double>(static_cast<size_t>(out.count()), value)); });
}

}  // namespace emu
