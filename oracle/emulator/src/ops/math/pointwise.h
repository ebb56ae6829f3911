// Element-wise helpers: operators that a test or torch_npu needs around the four, computed exactly and rounded once.
#pragma once

#include <cmath>
#include <functional>

#include "ops/checks.h"
#include "ops/numeric.h"

namespace emu {

using RealFunction = std::function<double(double, double)>;
using IntegerFunction = std::function<int64_t(int64_t, int64_t)>;

inline bool integral(aclDataType type) { return is_integer(type) || type == ACL_BOOL; }

// out = f(a, b) with broadcasting. Integers stay integers where both inputs are.
inline void binary(Op& op, const Tensor& a, const Tensor& b, const Tensor& out, RealFunction real,
                   IntegerFunction integer = nullptr) {
  op.require_present({a, b, out});
  Dims shape = broadcast_shape(a, b);
  check_shape(out, shape);
  if (out.empty()) return;
  bool exact = integer && integral(a.type) && integral(b.type);
  op.workspace({a, b, out});
  op.kernel([=](Run& run) {
    View va = broadcast(run.open(a), shape), vb = broadcast(run.open(b), shape);
    if (exact) {
      std::vector<int64_t> xs = read_integers(va), ys = read_integers(vb);
      for (size_t i = 0; i < xs.size(); i++) xs[i] = integer(xs[i], ys[i]);
      write(run.open(out), xs);
    } else {
      std::vector<double> xs = read_doubles(va), ys = read_doubles(vb);
      for (size_t i = 0; i < xs.size(); i++) xs[i] = real(xs[i], ys[i]);
      write(run.open(out), xs);
    }
  });
}

// out = f(a).
inline void unary(Op& op, const Tensor& a, const Tensor& out, std::function<double(double)> real,
                  std::function<int64_t(int64_t)> integer = nullptr) {
  op.require_present({a, out});
  check_shape(out, a.shape);
  if (out.empty()) return;
  bool exact = integer && integral(a.type);
  op.workspace({a, out});
  op.kernel([=](Run& run) {
    if (exact) {
      std::vector<int64_t> xs = read_integers(run.open(a));
      for (int64_t& x : xs) x = integer(x);
      write(run.open(out), xs);
    } else {
      std::vector<double> xs = read_doubles(run.open(a));
      for (double& x : xs) x = real(x);
      write(run.open(out), xs);
    }
  });
}

// out = f(a, scalar); the scalar has the precision the tensor's kernel computes with.
inline void with_scalar(Op& op, const Tensor& a, const ScalarInfo& scalar, const Tensor& out, RealFunction real,
                        IntegerFunction integer = nullptr) {
  bool exact = integer && scalar.integral(), wide = a.type == ACL_DOUBLE || scalar.integral();
  double value = wide ? scalar.real : static_cast<double>(static_cast<float>(scalar.real));
  std::function<int64_t(int64_t)> of_integers = [=, whole = scalar.integer](int64_t x) { return integer(x, whole); };
  unary(op, a, out, [=](double x) { return real(x, value); }, exact ? of_integers : nullptr);
}

}  // namespace emu
