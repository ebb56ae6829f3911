// What the gradients of elementwise functions share: their arguments' checks, the loop, the types on the way.
#pragma once

#include <array>
#include <cmath>
#include <initializer_list>
#include <utility>
#include <vector>

#include "ops/checks.h"
#include "ops/numeric.h"

namespace emu {

inline bool is_950() { return soc().form == KernelForm::k950; }
inline bool is_910() { return soc().form == KernelForm::kTbe910; }

inline void check_supported_floats(std::initializer_list<Tensor> tensors) {
  for (const Tensor& t : tensors) check_supported_float(t);
}

inline void check_ranks(std::initializer_list<Tensor> tensors) {
  for (const Tensor& t : tensors) check_rank(t, 8);
}

// The shape that all of them broadcast to; 161002 if there is none.
inline Dims broadcast_shape(const Tensor& a, const Tensor& b, const Tensor& c) {
  Tensor both = a;
  both.shape = broadcast_shape(a, b);
  return broadcast_shape(both, c);
}

inline bool any_empty(std::initializer_list<Tensor> tensors) {
  for (const Tensor& t : tensors) {
    if (t.empty()) return true;
  }
  return false;
}

// The dtype of the kernel: the common one of inputs of any dtype, which must be float16, float32 or bfloat16.
inline aclDataType check_promoted_float(std::initializer_list<Tensor> tensors) {
  aclDataType type = tensors.begin()->type;
  for (const Tensor& t : tensors) {
    type = promote(type, t.type);
    check(type != ACL_DT_UNDEFINED, "%s has dtype %s, which has no common dtype with the others", t.name,
          type_name(t.type));
  }
  check(supported_float(type), "the common dtype of the inputs is %s; %s supports float16, float32%s", type_name(type),
        soc().soc, soc().bfloat16 ? ", bfloat16" : "");
  return type;
}

// What a scalar is to a kernel: a float32.
inline float value_of(const std::shared_ptr<ScalarInfo>& scalar) { return scalar->to_float(); }

inline std::vector<float> read_like(const View& view, float) { return read_floats(view); }
inline std::vector<double> read_like(const View& view, double) { return read_doubles(view); }

// A number as a tensor of the type holds it; integers to nearest even, as the kernels' casts.
template <class Real>
Real stored(aclDataType type, Real value) {
  return is_integer(type) ? std::nearbyint(value) : round_to(type, value);
}

// The elements broadcast to the shape, as the host casts them to the type; ones for an absent tensor.
template <class Real>
std::vector<Real> read_cast(Run& run, const Tensor& tensor, const Dims& shape, aclDataType type) {
  if (!tensor.present) return std::vector<Real>(static_cast<size_t>(count_of(shape)), Real(1));
  View view = broadcast(run.open(tensor), shape);
  if (view.type == type) return read_like(view, Real());
  if (type == ACL_FLOAT) {  // of an int64 a double would be a rounding of its own
    std::vector<float> once = read_floats(view);
    return std::vector<Real>(once.begin(), once.end());
  }
  std::vector<Real> values;
  if (view.type == ACL_INT64 && (type == ACL_FLOAT16 || type == ACL_BF16)) {  // a double would round it too
    for (int64_t v : read_integers(view)) values.push_back(static_cast<Real>(round_to(type, v)));
    return values;
  }
  for (double v : read_doubles(view)) values.push_back(static_cast<Real>(stored(type, v)));
  return values;
}

template <class Real, size_t N, class F, size_t... I>
void run_elementwise(Run& run, aclDataType type, const Tensor& out, const std::array<Tensor, N>& inputs, F& f,
                     std::index_sequence<I...>) {
  std::array<std::vector<Real>, N> columns = {read_cast<Real>(run, inputs[I], out.shape, type)...};
  for (size_t i = 0; i < columns[0].size(); i++)
    columns[0][i] = stored(type, static_cast<Real>(f(static_cast<Real>(columns[I][i])...)));
  write(run.open(out), columns[0]);
}

// The kernel: f of every element of the inputs (1 for an absent one), broadcast to out's shape and cast to `type`, in
// float32 (float64 for that type); rounded to `type`, then cast to out's.
template <size_t N, class F>
void elementwise(Op& op, aclDataType type, const Tensor& out, const Tensor (&given)[N], F f) {
  std::array<Tensor, N> inputs;
  std::copy(std::begin(given), std::end(given), inputs.begin());
  size_t copies = 0;
  for (const Tensor& t : inputs) copies += t.contiguous() ? 0 : static_cast<size_t>(t.count()) * aclDataTypeSize(t.type);
  op.workspace({out}, copies);
  op.kernel([=](Run& run) mutable {
    if (type == ACL_DOUBLE)
      run_elementwise<double>(run, type, out, inputs, f, std::make_index_sequence<N>());
    else
      run_elementwise<float>(run, type, out, inputs, f, std::make_index_sequence<N>());
  });
}

}  // namespace emu
