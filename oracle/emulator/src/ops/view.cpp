#include "ops/view.h"

#include <algorithm>

#include "core/soc.h"
#include "ops/numeric.h"

namespace emu {
namespace {

// The longest runs of elements at one distance: dims that follow each other in memory are joined.
struct Runs {
  Dims shape, strides;

  explicit Runs(const View& view) {
    for (size_t i = 0; i < view.shape.size(); i++) {
      if (view.shape[i] == 1) continue;
      if (!shape.empty() && strides.back() == view.strides[i] * view.shape[i]) {
        shape.back() *= view.shape[i];
        strides.back() = view.strides[i];
      } else {
        shape.push_back(view.shape[i]);
        strides.push_back(view.strides[i]);
      }
    }
    if (shape.empty()) shape.push_back(1), strides.push_back(1);
  }
};

// Calls f(offset, count, stride) for every run, offsets and strides in elements, in row-major order.
template <class F>
void each_run(const View& view, F&& f) {
  if (view.count() == 0) return;
  Runs runs(view);
  size_t outer = runs.shape.size() - 1;
  Dims index(outer, 0);
  int64_t offset = 0;
  while (true) {
    f(offset, runs.shape[outer], runs.strides[outer]);
    size_t d = outer;
    while (d-- > 0) {
      offset += runs.strides[d];
      if (++index[d] < runs.shape[d]) break;
      offset -= runs.strides[d] * runs.shape[d];
      index[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

template <class Stored, class Wanted, class Convert>
void read_as(const View& view, std::vector<Wanted>& out, Convert convert) {
  Wanted* to = out.data();
  each_run(view, [&](int64_t offset, int64_t count, int64_t stride) {
    const Stored* from = reinterpret_cast<const Stored*>(view.first) + offset;
    for (int64_t i = 0; i < count; i++) *to++ = convert(from[i * stride]);
  });
}

template <class Stored, class Given, class Convert>
void write_as(const View& view, const std::vector<Given>& values, Convert convert) {
  const Given* from = values.data();
  each_run(view, [&](int64_t offset, int64_t count, int64_t stride) {
    Stored* to = reinterpret_cast<Stored*>(view.first) + offset;
    for (int64_t i = 0; i < count; i++) to[i * stride] = convert(*from++);
  });
}

[[noreturn]] void unsupported(aclDataType type) {
  throw Error{ACL_ERROR_RT_AICORE_EXCEPTION, text("no kernel computes with %s", type_name(type))};
}

template <class Wanted>
std::vector<Wanted> read_all(const View& view) {
  std::vector<Wanted> out(static_cast<size_t>(view.count()));
  bool is_real = with_stored(view.type, [&](auto stored) {
    using Stored = decltype(stored);
    read_as<Stored>(view, out, [](Stored v) { return cast<Wanted>(number_of(v)); });
  });
  if (!is_real) unsupported(view.type);  // of complex numbers the imaginary parts would be lost
  return out;
}

uint16_t half_of(float value, bool saturates) {
  uint16_t half = float_to_half(value);
  return saturates && (half & 0x7FFF) == 0x7C00 ? static_cast<uint16_t>(half - 1) : half;
}

// A double as a float whose last bit remembers that something was cut off, so that one more rounding is right.
float jam(double value) {
  float nearest = static_cast<float>(value);
  if (!std::isfinite(nearest) || static_cast<double>(nearest) == value || (bits_of(nearest) & 1u) != 0) return nearest;
  bool away = std::fabs(value) > std::fabs(static_cast<double>(nearest));
  return float_of(bits_of(nearest) + (away ? 1u : ~0u));
}
float jam(float value) { return value; }
// Beyond 2^53 the low bits become one that a double holds: no tie of 16 bits lies between the two numbers.
float jam(int64_t value) {
  bool is_beyond = value > int64_t{1} << 53 || value < -(int64_t{1} << 53);
  if (is_beyond && (value & 0x7FF) != 0) value = (value & ~int64_t{0x7FF}) | 0x400;
  return jam(static_cast<double>(value));
}

template <class Stored, class Given>
Stored stored_as(Given value, bool saturates) {
  if constexpr (std::is_same_v<Stored, Half>)
    return {half_of(jam(value), saturates)};
  else if constexpr (std::is_same_v<Stored, Bfloat>)
    return {float_to_bfloat(jam(value))};
  else if constexpr (std::is_same_v<Stored, Bool>)
    return {value != 0};
  else
    return cast<Stored>(value);
}

template <class Given>
void write_complex(const View& view, const std::vector<Given>& values) {
  if (view.type == ACL_COMPLEX64)
    write_as<std::complex<float>>(view, values, [](Given v) { return std::complex<float>(v); });
  else if (view.type == ACL_COMPLEX128)
    write_as<std::complex<double>>(view, values, [](Given v) { return std::complex<double>(v); });
  else
    unsupported(view.type);
}

template <class Given>
void write_real(const View& view, const std::vector<Given>& values) {
  bool is_real = with_stored(view.type, [&](auto stored) {
    using Stored = decltype(stored);
    write_as<Stored>(view, values, [saturates = soc().saturates](Given v) { return stored_as<Stored>(v, saturates); });
  });
  if (!is_real) write_complex(view, values);
}

}  // namespace

View broadcast(const View& view, const Dims& shape) {
  View out = view;
  out.shape = shape;
  out.strides.assign(shape.size(), 0);
  size_t shift = shape.size() - view.shape.size();
  for (size_t i = 0; i < view.shape.size(); i++) {
    if (view.shape[i] == shape[shift + i]) out.strides[shift + i] = view.strides[i];
  }
  return out;
}

std::vector<float> read_floats(const View& view) { return read_all<float>(view); }
std::vector<double> read_doubles(const View& view) { return read_all<double>(view); }
std::vector<int64_t> read_integers(const View& view) { return read_all<int64_t>(view); }

std::vector<std::complex<double>> read_complexes(const View& view) {
  std::vector<std::complex<double>> out(static_cast<size_t>(view.count()));
  if (view.type == ACL_COMPLEX64) {
    read_as<std::complex<float>>(view, out, [](std::complex<float> v) { return std::complex<double>(v); });
  } else if (view.type == ACL_COMPLEX128) {
    read_as<std::complex<double>>(view, out, [](std::complex<double> v) { return v; });
  } else {
    std::vector<double> reals = read_doubles(view);
    std::copy(reals.begin(), reals.end(), out.begin());
  }
  return out;
}

void write(const View& view, const std::vector<float>& values) { write_real(view, values); }
void write(const View& view, const std::vector<double>& values) { write_real(view, values); }
void write(const View& view, const std::vector<int64_t>& values) { write_real(view, values); }
void write(const View& view, const std::vector<std::complex<double>>& values) { write_complex(view, values); }

void copy_bytes(const View& to, const View& from) {
  size_t size = aclDataTypeSize(from.type);
  std::vector<char> bytes(static_cast<size_t>(from.count()) * size);
  char* at = bytes.data();
  each_run(from, [&](int64_t offset, int64_t count, int64_t stride) {
    for (int64_t i = 0; i < count; i++, at += size)
      memcpy(at, from.first + (offset + i * stride) * static_cast<int64_t>(size), size);
  });
  at = bytes.data();
  each_run(to, [&](int64_t offset, int64_t count, int64_t stride) {
    for (int64_t i = 0; i < count; i++, at += size)
      memcpy(to.first + (offset + i * stride) * static_cast<int64_t>(size), at, size);
  });
}

float round_to(aclDataType type, float value) {
  if (type == ACL_FLOAT16) return half_to_float(half_of(value, soc().saturates));
  if (type == ACL_BF16) return bfloat_to_float(float_to_bfloat(value));
  return value;
}

float round_to(aclDataType type, int64_t value) { return round_to(type, jam(value)); }

double round_to(aclDataType type, double value) {
  if (type == ACL_DOUBLE) return value;
  return static_cast<double>(round_to(type, type == ACL_FLOAT ? static_cast<float>(value) : jam(value)));
}

}  // namespace emu
