// aclnnAdd, Sub, Mul, Div with a tensor or a scalar (the names with s), and their Inplace forms.
#include "ops/math/pointwise.h"

using namespace emu;

namespace {

RealFunction real_sum(double alpha) {
  return [=](double a, double b) { return a + alpha * b; };
}
IntegerFunction integer_sum(int64_t alpha) {
  return [=](int64_t a, int64_t b) { return a + alpha * b; };
}
double product(double a, double b) { return a * b; }
int64_t integer_product(int64_t a, int64_t b) { return a * b; }
double quotient(double a, double b) { return a / b; }

}  // namespace

// self + sign * alpha * other
#define EMU_SUM(name, sign)                                                                                         \
  EMU_FIRST_PHASE(aclnn##name, const aclTensor* self, const aclTensor* other, const aclScalar* alpha,               \
                  aclTensor* out) {                                                                                 \
    auto a = op.scalar("alpha", alpha);                                                                             \
    Tensor x = op.input("self", self), y = op.input("other", other);                                                \
    binary(op, x, y, op.output("out", out), real_sum(sign a->real), integer_sum(sign a->integer));                  \
  }                                                                                                                 \
  EMU_END(aclnn##name)                                                                                              \
  EMU_FIRST_PHASE(aclnnInplace##name, aclTensor* selfRef, const aclTensor* other, const aclScalar* alpha) {         \
    auto a = op.scalar("alpha", alpha);                                                                             \
    Tensor x = op.output("selfRef", selfRef), y = op.input("other", other);                                         \
    binary(op, x, y, x, real_sum(sign a->real), integer_sum(sign a->integer));                                      \
  }                                                                                                                 \
  EMU_END(aclnnInplace##name)                                                                                       \
  EMU_FIRST_PHASE(aclnn##name##s, const aclTensor* self, const aclScalar* other, const aclScalar* alpha,            \
                  aclTensor* out) {                                                                                 \
    auto a = op.scalar("alpha", alpha), y = op.scalar("other", other);                                              \
    Tensor x = op.input("self", self);                                                                              \
    with_scalar(op, x, *y, op.output("out", out), real_sum(sign a->real), integer_sum(sign a->integer));            \
  }                                                                                                                 \
  EMU_END(aclnn##name##s)                                                                                           \
  EMU_FIRST_PHASE(aclnnInplace##name##s, aclTensor* selfRef, const aclScalar* other, const aclScalar* alpha) {      \
    auto a = op.scalar("alpha", alpha), y = op.scalar("other", other);                                              \
    Tensor x = op.output("selfRef", selfRef);                                                                       \
    with_scalar(op, x, *y, x, real_sum(sign a->real), integer_sum(sign a->integer));                                \
  }                                                                                                                 \
  EMU_END(aclnnInplace##name##s)

EMU_SUM(Add, +)
EMU_SUM(Sub, -)

// f(self, other)
#define EMU_FACTOR(name, real, integer)                                                            \
  EMU_FIRST_PHASE(aclnn##name, const aclTensor* self, const aclTensor* other, aclTensor* out) {    \
    Tensor x = op.input("self", self), y = op.input("other", other);                               \
    binary(op, x, y, op.output("out", out), real, integer);                                        \
  }                                                                                                \
  EMU_END(aclnn##name)                                                                             \
  EMU_FIRST_PHASE(aclnnInplace##name, aclTensor* selfRef, const aclTensor* other) {                \
    Tensor x = op.output("selfRef", selfRef), y = op.input("other", other);                        \
    binary(op, x, y, x, real, integer);                                                            \
  }                                                                                                \
  EMU_END(aclnnInplace##name)                                                                      \
  EMU_FIRST_PHASE(aclnn##name##s, const aclTensor* self, const aclScalar* other, aclTensor* out) { \
    auto y = op.scalar("other", other);                                                            \
    Tensor x = op.input("self", self);                                                             \
    with_scalar(op, x, *y, op.output("out", out), real, integer);                                  \
  }                                                                                                \
  EMU_END(aclnn##name##s)                                                                          \
  EMU_FIRST_PHASE(aclnnInplace##name##s, aclTensor* selfRef, const aclScalar* other) {             \
    auto y = op.scalar("other", other);                                                            \
    Tensor x = op.output("selfRef", selfRef);                                                      \
    with_scalar(op, x, *y, x, real, integer);                                                      \
  }                                                                                                \
  EMU_END(aclnnInplace##name##s)

EMU_FACTOR(Mul, product, integer_product)
EMU_FACTOR(Div, quotient, nullptr)
