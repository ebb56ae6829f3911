// Functions of one tensor: out = f(self).
#include "ops/math/pointwise.h"

using namespace emu;

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

}  // namespace

#define EMU_UNARY(name, real, integer)                                  \
  EMU_FIRST_PHASE(aclnn##name, const aclTensor* self, aclTensor* out) { \
    Tensor x = op.input("self", self);                                  \
    unary(op, x, op.output("out", out), real, integer);                 \
  }                                                                     \
  EMU_END(aclnn##name)

#define EMU_INPLACE_UNARY(name, real)                       \
  EMU_FIRST_PHASE(aclnnInplace##name, aclTensor* selfRef) { \
    Tensor x = op.output("selfRef", selfRef);               \
    unary(op, x, x, real);                                  \
  }                                                         \
  EMU_END(aclnnInplace##name)

#define EMU_OF(expression) [](double x) -> double { return expression; }
#define EMU_OF_INT(expression) [](int64_t x) -> int64_t { return expression; }

EMU_UNARY(Abs, EMU_OF(std::fabs(x)), EMU_OF_INT(x < 0 ? -x : x))
EMU_UNARY(Neg, EMU_OF(-x), EMU_OF_INT(-x))
EMU_UNARY(Sign, sign, EMU_OF_INT((x > 0) - (x < 0)))
EMU_UNARY(Ceil, EMU_OF(std::ceil(x)), EMU_OF_INT(x))
EMU_UNARY(Floor, EMU_OF(std::floor(x)), EMU_OF_INT(x))
EMU_UNARY(Trunc, EMU_OF(std::trunc(x)), EMU_OF_INT(x))
EMU_UNARY(Round, EMU_OF(std::nearbyint(x)), EMU_OF_INT(x))
EMU_UNARY(Exp, EMU_OF(std::exp(x)), nullptr)
EMU_UNARY(Log, EMU_OF(std::log(x)), nullptr)
EMU_UNARY(Log2, EMU_OF(std::log2(x)), nullptr)
EMU_UNARY(Log10, EMU_OF(std::log10(x)), nullptr)
EMU_UNARY(Sqrt, EMU_OF(std::sqrt(x)), nullptr)
EMU_UNARY(Reciprocal, EMU_OF(1 / x), nullptr)
EMU_UNARY(Sigmoid, sigmoid, nullptr)
EMU_INPLACE_UNARY(Sigmoid, sigmoid)
EMU_UNARY(Tanh, EMU_OF(std::tanh(x)), nullptr)
EMU_INPLACE_UNARY(Tanh, EMU_OF(std::tanh(x)))
EMU_UNARY(IsFinite, EMU_OF(std::isfinite(x)), EMU_OF_INT((static_cast<void>(x), 1)))
EMU_UNARY(LogicalNot, EMU_OF(x == 0), EMU_OF_INT(x == 0))
// Of a bool the other one, for all bits but the lowest are 0 in both.
EMU_UNARY(BitwiseNot, EMU_OF(x == 0), x.type == ACL_BOOL ? std::function<int64_t(int64_t)>() : EMU_OF_INT(~x))
