// Number formats in software: float16 and bfloat16 with round-to-nearest-even, casts, and how tensors store numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "acl/acl_base.h"

namespace emu {

inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

inline float half_to_float(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16, magnitude = half & 0x7FFFu;
  if (magnitude >= 0x7C00u) return float_of(sign | 0x7F800000u | (magnitude & 0x3FFu) << 13);
  if (magnitude < 0x0400u) {  // subnormal: magnitude * 2^-24
    float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  return float_of(sign | ((magnitude << 13) + 0x38000000u));
}

inline uint16_t float_to_half(float value) {
  uint32_t bits = bits_of(value), magnitude = bits & 0x7FFFFFFFu;
  uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  if (magnitude > 0x7F800000u) return sign | 0x7E00u;
  if (magnitude >= 0x47800000u) return sign | 0x7C00u;  // 65536 and more
  if (magnitude < 0x38800000u) {                        // below 2^-14: let the addition of 0.5 round at 2^-24
    float shifted = float_of(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(bits_of(shifted) - bits_of(0.5f));
  }
  magnitude += 0xFFFu + (magnitude >> 13 & 1u);  // to nearest, ties to even; may carry into infinity
  return sign | static_cast<uint16_t>((magnitude - 0x38000000u) >> 13);
}

inline float bfloat_to_float(uint16_t bfloat) { return float_of(static_cast<uint32_t>(bfloat) << 16); }

inline uint16_t float_to_bfloat(float value) {
  uint32_t bits = bits_of(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

// Truncates; NaN gives 0 and what does not fit the nearest end of int64.
inline int64_t to_integer(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

// A number as another type: floats truncate into integers.
template <class Wanted, class Given>
Wanted cast(Given value) {
  if constexpr (std::is_floating_point_v<Given> && std::is_integral_v<Wanted>)
    return static_cast<Wanted>(to_integer(static_cast<double>(value)));
  else
    return static_cast<Wanted>(value);
}

// What tensors store where C++ has no type for it, and the number that it is.
struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};
inline float number_of(Half stored) { return half_to_float(stored.bits); }
inline float number_of(Bfloat stored) { return bfloat_to_float(stored.bits); }
inline bool number_of(Bool stored) { return stored.byte != 0; }
template <class Number>
Number number_of(Number stored) {
  return stored;
}

// Calls f with some value of the type that tensors of a real dtype store; false for any other dtype.
template <class F>
bool with_stored(aclDataType type, F&& f) {
  switch (type) {
    case ACL_FLOAT:
      return f(float()), true;
    case ACL_DOUBLE:
      return f(double()), true;
    case ACL_FLOAT16:
      return f(Half()), true;
    case ACL_BF16:
      return f(Bfloat()), true;
    case ACL_INT8:
      return f(int8_t()), true;
    case ACL_UINT8:
      return f(uint8_t()), true;
    case ACL_INT16:
      return f(int16_t()), true;
    case ACL_UINT16:
      return f(uint16_t()), true;
    case ACL_INT32:
      return f(int32_t()), true;
    case ACL_UINT32:
      return f(uint32_t()), true;
    case ACL_INT64:
      return f(int64_t()), true;
    case ACL_UINT64:
      return f(uint64_t()), true;
    case ACL_BOOL:
      return f(Bool()), true;
    default:
      return false;
  }
}

}  // namespace emu
