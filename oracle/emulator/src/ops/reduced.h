// The rows of a tensor some of whose axes are reduced.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "ops/op.h"

namespace emu {

using Mask = std::vector<bool>;  // by axis: whether it is reduced

inline Mask one_axis(const Dims& shape, int64_t axis) {
  const int64_t rank = static_cast<int64_t>(shape.size());
  Mask found(shape.size(), false);
  if (rank > 0) found[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  return found;
}
inline Mask last_axes(const Dims& shape, size_t count) {
  Mask found(shape.size(), false);
  for (size_t k = 0; k < count; k++) found[shape.size() - 1 - k] = true;
  return found;
}
inline Mask others(Mask axes) {
  axes.flip();
  return axes;
}

// A shape whose axis 1 is split: groups, and the channels of a group.
inline Dims grouped(Dims shape, int64_t groups) {
  shape.insert(shape.begin() + 1, groups);
  shape[2] /= groups;
  return shape;
}

// A view whose axes are those that the shape begins with: axes of stride 0 follow.
inline View leading(View view, const Dims& shape) {
  while (view.shape.size() < shape.size()) {
    view.shape.push_back(1);
    view.strides.push_back(0);
  }
  return view;
}

struct Reduced {
  std::vector<size_t> row, first;  // of every element in row-major order; the first element of every row
  size_t length = 1;

  Reduced(const Dims& shape, const Mask& over) : row(static_cast<size_t>(count_of(shape))) {
    Dims steps(shape.size(), 0), at(shape.size(), 0);
    size_t rows = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
      const size_t n = static_cast<size_t>(shape[axis]);
      if (over[axis]) {
        length *= n;
      } else {
        steps[axis] = static_cast<int64_t>(rows);
        rows *= n;
      }
    }
    first.assign(rows, row.size());
    int64_t place = 0;
    for (size_t i = 0; i < row.size(); i++) {
      row[i] = static_cast<size_t>(place);
      if (first[row[i]] == row.size()) first[row[i]] = i;
      for (size_t axis = shape.size(); axis-- > 0;) {
        place += steps[axis];
        if (++at[axis] < shape[axis]) break;
        place -= steps[axis] * shape[axis];
        at[axis] = 0;
      }
    }
  }
  size_t count() const { return first.size(); }

  // One value per row, for every element.
  std::vector<float> spread(const std::vector<float>& values) const {
    std::vector<float> found;
    found.reserve(row.size());
    for (size_t k : row) found.push_back(values[k]);
    return found;
  }

  // Sums of the rows' terms. Partial sums are float64, and each is rounded once: less is lost than in any order.
  template <class F>
  std::vector<float> sum(F&& term) const {
    std::vector<double> totals(count(), 0.0);
    for (size_t i = 0; i < row.size(); i++) totals[row[i]] += static_cast<double>(term(i));
    return std::vector<float>(totals.begin(), totals.end());
  }
  template <class F>
  std::vector<float> most(F&& term) const {
    return extreme(term, [](float a, float b) { return std::isnan(a) || a > b ? a : b; }, -1.0f);
  }
  template <class F>
  std::vector<float> least(F&& term) const {
    return extreme(term, [](float a, float b) { return std::isnan(a) || a < b ? a : b; }, 1.0f);
  }

 private:
  template <class F, class G>
  std::vector<float> extreme(F&& term, G&& better, float sign) const {
    std::vector<float> found(count(), sign * std::numeric_limits<float>::infinity());
    for (size_t i = 0; i < row.size(); i++) found[row[i]] = better(term(i), found[row[i]]);
    return found;
  }
};

}  // namespace emu
