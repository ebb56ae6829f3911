// Elements of a tensor in device memory, read and written through their strides.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "objects/objects.h"
#include "ops/types.h"

namespace emu {

struct View {
  Dims shape, strides;  // strides in elements
  aclDataType type = ACL_DT_UNDEFINED;
  char* first = nullptr;  // the element with index 0; null for an empty or absent tensor

  int64_t count() const { return count_of(shape); }
};

// The view with stretched dims of stride 0, as broadcasting to `shape` sees it.
EMU_PUBLIC View broadcast(const View& view, const Dims& shape);

// All elements in row-major order. Reading a wider type as a narrower one converts; complex gives the real part.
EMU_PUBLIC std::vector<float> read_floats(const View& view);
EMU_PUBLIC std::vector<double> read_doubles(const View& view);
EMU_PUBLIC std::vector<int64_t> read_integers(const View& view);
EMU_PUBLIC std::vector<std::complex<double>> read_complexes(const View& view);

// Writes all elements, converted to the view's type: to nearest even for floats (a float16 overflow saturates on the
// SoCs that do), truncated for integers, != 0 for bool.
EMU_PUBLIC void write(const View& view, const std::vector<float>& values);
EMU_PUBLIC void write(const View& view, const std::vector<double>& values);
EMU_PUBLIC void write(const View& view, const std::vector<int64_t>& values);
EMU_PUBLIC void write(const View& view, const std::vector<std::complex<double>>& values);  // complex64, complex128
// Copies the elements' bytes; both views have one shape and one type.
EMU_PUBLIC void copy_bytes(const View& to, const View& from);

// The number rounded, once, to what a tensor of the float type would hold.
EMU_PUBLIC float round_to(aclDataType type, float value);
EMU_PUBLIC double round_to(aclDataType type, double value);
EMU_PUBLIC float round_to(aclDataType type, int64_t value);  // to 16 bits

}  // namespace emu
