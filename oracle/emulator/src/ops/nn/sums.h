// Sums over the axes along which a tensor was broadcast.
#pragma once

#include <vector>

#include "ops/op.h"

namespace emu {

// Sums of the terms of shape `from` that share an element of `to` (right-aligned, its dims equal or 1). In pairs would
// lose less than one after the other: partial sums are kept in float64, and each is rounded once to float32.
inline std::vector<float> sum_to(const std::vector<float>& terms, const Dims& from, const Dims& to) {
  std::vector<double> sums(static_cast<size_t>(count_of(to)), 0.0);
  Dims steps(from.size(), 0), at(from.size(), 0);
  int64_t step = 1;
  for (size_t k = 0; k < to.size(); k++) {
    size_t own = to.size() - 1 - k, axis = from.size() - 1 - k;
    if (to[own] != 1) steps[axis] = step;
    step *= to[own];
  }
  int64_t place = 0;
  for (float term : terms) {
    sums[static_cast<size_t>(place)] += static_cast<double>(term);
    for (size_t axis = from.size(); axis-- > 0;) {
      place += steps[axis];
      if (++at[axis] < from[axis]) break;
      place -= steps[axis] * from[axis];
      at[axis] = 0;
    }
  }
  return std::vector<float>(sums.begin(), sums.end());
}

}  // namespace emu
