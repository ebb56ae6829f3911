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
  EMU_C aclnnStatus aclnn##name##GetWorkspaceSize(const aclTensor* self, const aclTensor* other,                    \
                                                  const aclScalar* alpha, aclTensor* out, uint64_t* workspaceSize,  \
                                                  aclOpExecutor** executor) {                                       \
    static FirstPhase phase("aclnn" #name);                                                                         \
    return phase(workspaceSize, executor, [&](Op& op) {                                                             \
      auto a = op.scalar("alpha", alpha);                                                                           \
      Tensor x = op.input("self", self), y = op.input("other", other);                                              \
      binary(op, x, y, op.output("out", out), real_sum(sign a->real), integer_sum(sign a->integer));                \
    });                                                                                                             \
  }                                                                                                                 \
  EMU_SECOND_PHASE(aclnn##name)                                                                                     \
  EMU_C aclnnStatus aclnnInplace##name##GetWorkspaceSize(aclTensor* selfRef, const aclTensor* other,                \
                                                         const aclScalar* alpha, uint64_t* workspaceSize,           \
                                                         aclOpExecutor** executor) {                                \
    static FirstPhase phase("aclnnInplace" #name);                                                                  \
    return phase(workspaceSize, executor, [&](Op& op) {                                                             \
      auto a = op.scalar("alpha", alpha);                                                                           \
      Tensor x = op.output("selfRef", selfRef), y = op.input("other", other);                                       \
      binary(op, x, y, x, real_sum(sign a->real), integer_sum(sign a->integer));                                    \
    });                                                                                                             \
  }                                                                                                                 \
  EMU_SECOND_PHASE(aclnnInplace##name)                                                                              \
  EMU_C aclnnStatus aclnn##name##sGetWorkspaceSize(const aclTensor* self, const aclScalar* other,                   \
                                                   const aclScalar* alpha, aclTensor* out, uint64_t* workspaceSize, \
                                                   aclOpExecutor** executor) {                                      \
    static FirstPhase phase("aclnn" #name "s");                                                                     \
    return phase(workspaceSize, executor, [&](Op& op) {                                                             \
      auto a = op.scalar("alpha", alpha), y = op.scalar("other", other);                                            \
      Tensor x = op.input("self", self);                                                                            \
      with_scalar(op, x, *y, op.output("out", out), real_sum(sign a->real), integer_sum(sign a->integer));          \
    });                                                                                                             \
  }                                                                                                                 \
  EMU_SECOND_PHASE(aclnn##name##s)                                                                                  \
  EMU_C aclnnStatus aclnnInplace##name##sGetWorkspaceSize(aclTensor* selfRef, const aclScalar* other,               \
                                                          const aclScalar* alpha, uint64_t* workspaceSize,          \
                                                          aclOpExecutor** executor) {                               \
    static FirstPhase phase("aclnnInplace" #name "s");                                                              \
    return phase(workspaceSize, executor, [&](Op& op) {                                                             \
      auto a = op.scalar("alpha", alpha), y = op.scalar("other", other);                                            \
      Tensor x = op.output("selfRef", selfRef);                                                                     \
      with_scalar(op, x, *y, x, real_sum(sign a->real), integer_sum(sign a->integer));                              \
    });                                                                                                             \
  }                                                                                                                 \
  EMU_SECOND_PHASE(aclnnInplace##name##s)

EMU_SUM(Add, +)
EMU_SUM(Sub, -)

// f(self, other)
#define EMU_FACTOR(name, real, integer)                                                                           \
  EMU_C aclnnStatus aclnn##name##GetWorkspaceSize(const aclTensor* self, const aclTensor* other, aclTensor* out,  \
                                                  uint64_t* workspaceSize, aclOpExecutor** executor) {            \
    static FirstPhase phase("aclnn" #name);                                                                       \
    return phase(workspaceSize, executor, [&](Op& op) {                                                           \
      Tensor x = op.input("self", self), y = op.input("other", other);                                            \
      binary(op, x, y, op.output("out", out), real, integer);                                                     \
    });                                                                                                           \
  }                                                                                                               \
  EMU_SECOND_PHASE(aclnn##name)                                                                                   \
  EMU_C aclnnStatus aclnnInplace##name##GetWorkspaceSize(aclTensor* selfRef, const aclTensor* other,              \
                                                         uint64_t* workspaceSize, aclOpExecutor** executor) {     \
    static FirstPhase phase("aclnnInplace" #name);                                                                \
    return phase(workspaceSize, executor, [&](Op& op) {                                                           \
      Tensor x = op.output("selfRef", selfRef), y = op.input("other", other);                                     \
      binary(op, x, y, x, real, integer);                                                                         \
    });                                                                                                           \
  }                                                                                                               \
  EMU_SECOND_PHASE(aclnnInplace##name)                                                                            \
  EMU_C aclnnStatus aclnn##name##sGetWorkspaceSize(const aclTensor* self, const aclScalar* other, aclTensor* out, \
                                                   uint64_t* workspaceSize, aclOpExecutor** executor) {           \
    static FirstPhase phase("aclnn" #name "s");                                                                   \
    return phase(workspaceSize, executor, [&](Op& op) {                                                           \
      auto y = op.scalar("other", other);                                                                         \
      Tensor x = op.input("self", self);                                                                          \
      with_scalar(op, x, *y, op.output("out", out), real, integer);                                               \
    });                                                                                                           \
  }                                                                                                               \
  EMU_SECOND_PHASE(aclnn##name##s)                                                                                \
  EMU_C aclnnStatus aclnnInplace##name##sGetWorkspaceSize(aclTensor* selfRef, const aclScalar* other,             \
                                                          uint64_t* workspaceSize, aclOpExecutor** executor) {    \
    static FirstPhase phase("aclnnInplace" #name "s");                                                            \
    return phase(workspaceSize, executor, [&](Op& op) {                                                           \
      auto y = op.scalar("other", other);                                                                         \
      Tensor x = op.output("selfRef", selfRef);                                                                   \
      with_scalar(op, x, *y, x, real, integer);                                                                   \
    });                                                                                                           \
  }                                                                                                               \
  EMU_SECOND_PHASE(aclnnInplace##name##s)

EMU_FACTOR(Mul, product, integer_product)
EMU_FACTOR(Div, quotient, nullptr)
