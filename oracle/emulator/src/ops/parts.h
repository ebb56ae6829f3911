// Equal parts of a tensor along an axis, and what lies once next to each of them.
#pragma once

#include <vector>

#include "ops/op.h"

namespace emu {

inline size_t from_front(int64_t axis, const Dims& shape) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
}

inline size_t inner_of(const Dims& shape, size_t axis) {
  size_t inner = 1;
  for (size_t k = axis; k < shape.size(); k++) inner *= static_cast<size_t>(shape[k]);
  return inner;
}

// The elements of a part in row-major order, one after the other along the axis as often as the shape has room for.
inline std::vector<float> once_per_part(const View& part, const Dims& shape, int64_t axis) {
  std::vector<float> once = read_floats(part);
  if (part.shape == shape) return once;
  const size_t at = from_front(axis, shape), own = inner_of(part.shape, at), whole = inner_of(shape, at);
  std::vector<float> again(static_cast<size_t>(count_of(shape)));
  for (size_t i = 0; i < again.size(); i++) again[i] = once[i / whole * own + i % whole % own];
  return again;
}

inline std::vector<float> part_of(View view, const Dims& shape, int64_t axis, int64_t part, int64_t parts) {
  const size_t at = from_front(axis, view.shape);
  view.shape[at] /= parts;
  view.first += part * view.shape[at] * view.strides[at] * static_cast<int64_t>(aclDataTypeSize(view.type));
  return once_per_part(view, shape, axis);
}

// For each element of a shape the number of its part.
inline std::vector<float> part_numbers(const Dims& shape, int64_t axis, int64_t parts) {
  const size_t whole = inner_of(shape, from_front(axis, shape)), own = whole / static_cast<size_t>(parts);
  std::vector<float> numbers(static_cast<size_t>(count_of(shape)));
  for (size_t i = 0; i < numbers.size(); i++) numbers[i] = static_cast<float>(i % whole / own);
  return numbers;
}

}  // namespace emu
