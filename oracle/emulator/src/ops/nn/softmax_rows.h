// The rows of a softmax: a tensor as outer x length x inner around one dim.
#pragma once

#include "ops/checks.h"

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

// The sum of a row by binary folding: the upper half is added to the lower until one is left.
inline float fold(std::vector<float>& terms) {
  for (size_t n = terms.size(); n > 1;) {
    size_t half = (n + 1) / 2;
    for (size_t i = 0; i + half < n; i++) terms[i] += terms[i + half];
    n = half;
  }
  return terms.empty() ? 0.0f : terms[0];
}

// The shape of a half along dim, of which the tensor has an even number.
inline Dims half_along(const Tensor& t, int64_t dim) {
  check(t.rank() > 0, "%s has rank 0", t.name);
  check_dim(dim, t.rank());
  size_t axis = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(t.rank()) : dim);
  check(t.shape[axis] % 2 == 0, "%s has shape %s: dim %ld is odd", t.name, show(t.shape).c_str(),
        static_cast<long>(dim));
  Dims half = t.shape;
  half[axis] /= 2;
  return half;
}

}  // namespace emu
