// Gradients of piecewise activations: ELU, SELU, LeakyReLU, Threshold, Hardtanh, Hardshrink, Softshrink, Hardsigmoid,
// Hardswish (two APIs). Of each the checks in the order of the host code (ops-nn), and what public kernels compute.
#include "ops/nn/elementwise.h"

using namespace emu;

namespace {

constexpr float kTiny = 0x1p-126f;

// The mask of ascend910's kernels: a clamped number instead of a comparison, a fraction for subnormal x.
template <class Real>
Real clamped_mask(Real x) {
  return x > 0 ? (x < kTiny ? x / kTiny : Real(1)) : Real(0);
}

// What the two shrinking operators share: a selection on ascend950, a product with 0 or 1 before (Hardshrink).
void check_same_activations(const Op& op, const Tensor& g, const Tensor& x, const Tensor& out) {
  op.require_present({g, x, out});
  check_supported_floats({x, g});
  check_same_type(g, x);
  check_same_type(out, x);
  check_ranks({g, x});
  check_same_shape(g, x);
  check_same_shape(out, x);
}

// With `edge`, self = -3 and 3 belong to the middle (the first API); without, to the sides (V2).
void hardswish(Op& op, const aclTensor* gradOutput, const aclTensor* self, aclTensor* output, bool edge) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), out = op.output("out", output);
  check_same_activations(op, g, x, out);
  if (any_empty({g, x})) return;
  elementwise(op, x.type, out, {g, x}, [edge](float g, float x) {
    bool above = edge ? x >= -3 : x > -3, below = edge ? x <= 3 : x < 3;
    float inside = above ? x * float_of(0x3eaaaaabu) + 0.5f : 0.0f;
    return g * (below ? inside : 1.0f);
  });
}

// Integers, at a zero threshold: nothing is rounded.
void integer_relu(Op& op, const Tensor& g, const Tensor& x, const Tensor& out) {
  op.workspace({g, x, out});
  op.kernel([=](Run& run) {
    auto gs = read_integers(broadcast(run.open(g), out.shape)), xs = read_integers(broadcast(run.open(x), out.shape));
    for (size_t i = 0; i < gs.size(); i++) gs[i] = xs[i] > 0 ? gs[i] : 0;
    write(run.open(out), gs);
  });
}

}  // namespace

EMU_FIRST_PHASE(aclnnEluBackward, const aclTensor* gradOutput, const aclScalar* alpha, const aclScalar* scale,
                const aclScalar* inputScale, bool isResult, const aclTensor* selfOrResult, aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput);
  auto a = op.scalar("alpha", alpha), s = op.scalar("scale", scale), i = op.scalar("inputScale", inputScale);
  op.attribute("isResult", isResult);
  Tensor x = op.input("selfOrResult", selfOrResult), out = op.output("gradInput", gradInput);
  op.require_present({g, x, out});
  check_same_type(g, x);
  check_supported_float(g);
  for (const auto& each : {a, s, i}) check(!is_complex(each->type), "a scalar of dtype %s has no cast", type_name(each->type));
  check_can_cast("gradOutput", g.type, out);
  check_same_shape(x, g);
  check_same_shape(out, g);
  check_rank(g, 8);
  check(!(isResult && value_of(a) < 0), "alpha is %g; with isResult it must not be negative", value_of(a));
  if (g.empty()) return;
  float negative = value_of(a) * value_of(s), positive = value_of(s), inner = value_of(i);
  elementwise(op, g.type, out, {g, x}, [=](float g, float x) {
    if (!(x <= 0)) return g * positive;
    return isResult ? g * inner * (x + negative) : g * inner * negative * std::exp(x * inner);
  });
}
EMU_END(aclnnEluBackward)

EMU_FIRST_PHASE(aclnnSeluBackward, const aclTensor* gradOutput, const aclTensor* result, aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), y = op.input("result", result), out = op.output("gradInput", gradInput);
  op.require_present({g, y, out});
  check_same_type(g, y);
  check_same_type(g, out);
  if (g.type != ACL_INT32 && g.type != ACL_INT8) check_supported_float(g);
  check_same_shape(g, y);
  check_same_shape(g, out);
  if (any_empty({g, y})) return;
  aclDataType type = g.type;
  elementwise(op, type, out, {g, y}, [type](float g, float y) {
    if (is_integer(type)) g = round_to(ACL_FLOAT16, g), y = round_to(ACL_FLOAT16, y);  // by way of float16, both ways
    bool below = is_950() ? y <= 0 : y < 0;
    float value = below ? g * (y + float_of(0x3fe10966u)) : g * float_of(0x3f867d5fu);
    return is_integer(type) ? round_to(ACL_FLOAT16, value) : value;
  });
}
EMU_END(aclnnSeluBackward)

EMU_FIRST_PHASE(aclnnLeakyReluBackward, const aclTensor* gradOutput, const aclTensor* self,
                const aclScalar* negativeSlope, bool selfIsResult, aclTensor* output) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self);
  auto given = op.scalar("negativeSlope", negativeSlope);
  op.attribute("selfIsResult", selfIsResult);
  Tensor out = op.output("out", output);
  op.require_present({g, x, out});
  for (const Tensor* t : {&g, &x}) check_supported_float_or_double(*t);
  if (given->type != ACL_BF16 || !soc().bfloat16)
    check_type_in("negativeSlope", given->type, {ACL_FLOAT, ACL_FLOAT16, ACL_DOUBLE, ACL_INT32, ACL_INT64, ACL_INT8,
                                                 ACL_UINT8, ACL_BOOL, ACL_INT16});
  check_ranks({g, x});
  check_shape(out, broadcast_shape(g, x));
  check(!(selfIsResult && given->real < 0), "negativeSlope is %g; with selfIsResult it must not be negative",
        given->real);
  aclDataType type = promoted(g, x);
  check_can_cast("the common dtype of gradOutput and self", type, out);
  if (x.empty()) return;
  float slope = value_of(given);
  elementwise(op, type, out, {g, x}, [=](auto g, auto x) {
    if (!is_910()) return x > 0 ? g : g * slope;
    auto m = clamped_mask(x);
    return g * (std::fabs(m - 1) * slope + m);
  });
}
EMU_END(aclnnLeakyReluBackward)

EMU_FIRST_PHASE(aclnnThresholdBackward, const aclTensor* gradOutput, const aclTensor* self, const aclScalar* threshold,
                aclTensor* output) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self);
  auto given = op.scalar("threshold", threshold);
  Tensor out = op.output("out", output);
  op.require_present({g, x, out});
  float t = value_of(given);
  bool zero = std::fabs(t) <= 0x1p-23f;  // the host then runs another kernel
  for (const Tensor* each : {&g, &x}) {
    bool wide = each->type == ACL_INT64 && soc().regbase && zero;
    if (!wide && !supported_float(each->type)) check_type_in(*each, {ACL_INT32, ACL_INT8, ACL_UINT8});
  }
  check_same_type(g, x);
  check_same_type(out, x);
  check_ranks({g, x});
  check_shape(out, broadcast_shape(x, g));
  if (any_empty({x, g})) return;
  if (zero && is_integer(x.type)) return integer_relu(op, g, x, out);
  elementwise(op, x.type, out, {g, x}, [=](float g, float x) {
    if (zero) return is_910() ? g * clamped_mask(x) : is_950() ? g * (x <= 0 ? 0.0f : 1.0f) : (x <= 0 ? 0.0f : g);
    return is_910() ? (x > t ? g : 0.0f) : (x <= t ? 0.0f : g);
  });
}
EMU_END(aclnnThresholdBackward)

EMU_FIRST_PHASE(aclnnHardtanhBackward, const aclTensor* gradOutput, const aclTensor* self, const aclScalar* min,
                const aclScalar* max, aclTensor* output) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self);
  auto lower = op.scalar("min", min), upper = op.scalar("max", max);
  Tensor out = op.output("out", output);
  op.require_present({x, g, out});
  check_supported_floats({g, x, out});
  check_same_type(g, x);
  check_ranks({g, x});
  check_same_shape(g, x);  // out's shape and dtype are not compared; its kernel refuses others
  if (any_empty({g, x})) return;
  float low = value_of(lower), high = value_of(upper);
  if (out.shape != x.shape || out.type != x.type) {
    return op.kernel([](Run&) {
      throw Error{ACL_ERROR_RT_AICORE_EXCEPTION, "out has another shape or dtype than self: no kernel writes that"};
    });
  }
  elementwise(op, x.type, out, {g, x}, [=](float g, float x) {
    if (is_950()) return (x < high && x > low) || std::isnan(x) ? g : 0.0f;
    if (!is_910()) return std::isnan(x) ? g : (x > low ? 1.0f : 0.0f) * (x < high ? 1.0f : 0.0f) * g;
    float c = std::fmin(std::fmax(x, low), high), q = (c - high) * (c - low);
    return g * (q / (q + 1e-10f));
  });
}
EMU_END(aclnnHardtanhBackward)

EMU_FIRST_PHASE(aclnnHardshrinkBackward, const aclTensor* gradOutput, const aclTensor* self, const aclScalar* lambd,
                aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self);
  auto given = op.scalar("lambd", lambd);
  Tensor out = op.output("gradInput", gradInput);
  op.require_present({g, x, out});
  check_supported_floats({g, x, out});
  check_ranks({g, x, out});
  aclDataType type = check_promoted_float({g, x});
  check_can_cast("the common dtype of gradOutput and self", type, out);
  if (any_empty({g, x})) return;  // before any shape is looked at
  check_shape(out, broadcast_shape(g, x));
  float limit = value_of(given);
  limit = limit < 0 ? 0 : limit;
  if (type == ACL_FLOAT16) limit = round_to(type, limit);  // its kernels compare in float16
  elementwise(op, type, out, {g, x}, [limit](float g, float x) {
    bool masked = std::fabs(x) <= limit;
    return is_950() ? (masked ? 0.0f : g) : g * (masked ? 0.0f : 1.0f);
  });
}
EMU_END(aclnnHardshrinkBackward)

EMU_FIRST_PHASE(aclnnSoftshrinkBackward, const aclTensor* gradOutput, const aclTensor* self, const aclScalar* lambda,
                aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self);
  auto given = op.scalar("lambda", lambda);
  Tensor out = op.output("gradInput", gradInput);
  op.require_present({g, x, out});
  check_supported_floats({g, x, out});
  check_ranks({g, x});
  check_shape(out, broadcast_shape(g, x));
  float limit = value_of(given);
  check(!(limit < 0), "lambda is %g; it must not be negative", limit);
  if (any_empty({g, out})) return;
  elementwise(op, g.type == x.type ? g.type : ACL_FLOAT, out, {g, x}, [limit](float g, float x) {
    if (is_950()) return std::fabs(x) > limit || std::isnan(x) ? g : 0.0f;
    return std::fabs(x) <= limit ? 0.0f : g;
  });
}
EMU_END(aclnnSoftshrinkBackward)

EMU_FIRST_PHASE(aclnnHardsigmoidBackward, const aclTensor* gradOutput, const aclTensor* self, aclTensor* output) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), out = op.output("out", output);
  op.require_present({g, x, out});
  check_supported_floats({g, x});
  aclDataType type = promoted(g, x);
  check_can_cast("the common dtype of gradOutput and self", type, out);
  check_ranks({g, x, out});
  check_same_shape(x, g);
  check_same_shape(x, out);
  if (any_empty({g, x, out})) return;
  elementwise(op, type, out, {g, x}, [](float g, float x) {
    const float sixth = float_of(0x3e2aaaabu), t = x * sixth + 0.5f;
    bool inside = is_950() ? t > 0 && t < 1 : std::fabs(x) < 3;
    return inside ? g * sixth : 0.0f;
  });
}
EMU_END(aclnnHardsigmoidBackward)

EMU_FIRST_PHASE(aclnnHardswishBackward, const aclTensor* gradOutput, const aclTensor* self, aclTensor* out) {
  hardswish(op, gradOutput, self, out, true);
}
EMU_END(aclnnHardswishBackward)

EMU_FIRST_PHASE(aclnnHardswishBackwardV2, const aclTensor* gradOutput, const aclTensor* self, aclTensor* out) {
  hardswish(op, gradOutput, self, out, false);
}
EMU_END(aclnnHardswishBackwardV2)
