// Comparisons with a tensor or a scalar, and the logical and bitwise operators that printing and masks need.
#include "ops/math/pointwise.h"

using namespace emu;

#define EMU_COMPARISON(name, symbol)                                                                    \
  EMU_FIRST_PHASE(aclnn##name##Tensor, const aclTensor* self, const aclTensor* other, aclTensor* out) { \
    Tensor x = op.input("self", self), y = op.input("other", other);                                    \
    binary(                                                                                             \
        op, x, y, op.output("out", out), [](double a, double b) { return a symbol b; },                 \
        [](int64_t a, int64_t b) -> int64_t { return a symbol b; });                                    \
  }                                                                                                     \
  EMU_END(aclnn##name##Tensor)                                                                          \
  EMU_FIRST_PHASE(aclnn##name##Scalar, const aclTensor* self, const aclScalar* other, aclTensor* out) { \
    auto y = op.scalar("other", other);                                                                 \
    Tensor x = op.input("self", self);                                                                  \
    with_scalar(                                                                                        \
        op, x, *y, op.output("out", out), [](double a, double b) { return a symbol b; },                \
        [](int64_t a, int64_t b) -> int64_t { return a symbol b; });                                    \
  }                                                                                                     \
  EMU_END(aclnn##name##Scalar)

EMU_COMPARISON(Eq, ==)
EMU_COMPARISON(Ne, !=)
EMU_COMPARISON(Gt, >)
EMU_COMPARISON(Ge, >=)
EMU_COMPARISON(Lt, <)
EMU_COMPARISON(Le, <=)

#define EMU_LOGICAL(name, symbol)                                                               \
  EMU_FIRST_PHASE(aclnn##name, const aclTensor* self, const aclTensor* other, aclTensor* out) { \
    Tensor x = op.input("self", self), y = op.input("other", other);                            \
    binary(                                                                                     \
        op, x, y, op.output("out", out),                                                        \
        [](double a, double b) {                                                                \
          return static_cast<double>(static_cast<int64_t>(a) symbol static_cast<int64_t>(b));   \
        },                                                                                      \
        [](int64_t a, int64_t b) -> int64_t { return a symbol b; });                            \
  }                                                                                             \
  EMU_END(aclnn##name)

EMU_LOGICAL(LogicalAnd, &&)
EMU_LOGICAL(LogicalOr, ||)
EMU_LOGICAL(BitwiseAndTensor, &)
EMU_LOGICAL(BitwiseOrTensor, |)
EMU_LOGICAL(BitwiseXorTensor, ^)

EMU_FIRST_PHASE(aclnnBitwiseAndScalar, const aclTensor* self, const aclScalar* other, aclTensor* out) {
  auto y = op.scalar("other", other);
  Tensor x = op.input("self", self);
  with_scalar(
      op, x, *y, op.output("out", out),
      [](double a, double b) { return static_cast<double>(to_integer(a) & to_integer(b)); },
      [](int64_t a, int64_t b) { return a & b; });
}
EMU_END(aclnnBitwiseAndScalar)

// One bool: same shape and same values.
EMU_FIRST_PHASE(aclnnEqual, const aclTensor* self, const aclTensor* other, aclTensor* out_) {
  Tensor x = op.input("self", self), y = op.input("other", other), out = op.output("out", out_);
  op.require_present({x, y, out});
  op.kernel([=](Run& run) {
    bool same = x.shape == y.shape && read_doubles(run.open(x)) == read_doubles(run.open(y));
    write(run.open(out), std::vector<int64_t>{same});
  });
}
EMU_END(aclnnEqual)

EMU_FIRST_PHASE(aclnnIsClose, const aclTensor* self, const aclTensor* other, double rtol, double atol, bool equal_nan,
                aclTensor* out) {
  Tensor x = op.input("self", self), y = op.input("other", other);
  binary(op, x, y, op.output("out", out), [=](double a, double b) -> double {
    if (std::isnan(a) || std::isnan(b)) return equal_nan && std::isnan(a) && std::isnan(b);
    return a == b || (std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= atol + rtol * std::fabs(b));
  });
}
EMU_END(aclnnIsClose)
