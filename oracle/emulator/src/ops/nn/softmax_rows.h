// The rows of a softmax: a tensor as outer x length x inner around one dim.
#pragma once

#include "ops/op.h"

namespace emu {

struct Rows {
  int64_t outer = 1, length = 1, inner = 1;

  Rows(const Dims& shape, int64_t dim) {
    if (shape.empty()) return;  // a scalar is one row of one
    auto axis = shape.begin() + (dim < 0 ? dim + static_cast<int64_t>(shape.size()) : dim);
    outer = count_of(Dims(shape.begin(), axis));
    length = *axis;
    inner = count_of(Dims(axis + 1, shape.end()));
  }
  // Calls f(start, step): the row's elements are start + i * step for i < length.
  template <class F>
  void each(F&& f) const {
    for (int64_t o = 0; o < outer; o++) {
      for (int64_t i = 0; i < inner; i++) f(static_cast<size_t>(o * length * inner + i), static_cast<size_t>(inner));
    }
  }
};

inline void check_dim(int64_t dim, size_t rank) {
  int64_t r = rank == 0 ? 1 : static_cast<int64_t>(rank);
  check(dim >= -r && dim < r, "dim is %ld; it must be in [%ld, %ld]", static_cast<long>(dim), static_cast<long>(-r),
        static_cast<long>(r - 1));
}

}  // namespace emu
