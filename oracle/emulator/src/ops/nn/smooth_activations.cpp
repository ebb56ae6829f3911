// Gradients of smooth activations: tanh, GELU (two APIs), FastGELU, SiLU, Swish, Mish, Softplus. Of each the checks in
// the order of the host code (ops-nn; tanh: ops-math), and the orders in which public kernels compute.
#include "ops/nn/elementwise.h"

using namespace emu;

namespace {

// ---- GELU by tanh, in the orders of its kernels (constants by their bits) ----

float gelu_tanh_950(float g, float x) {  // ascend910b and ascend310p too
  const float beta = float_of(0x3fcc422au), cubic = float_of(0x3d922279u), slope = float_of(0x3e5b33b6u);
  float q = x * x, p = std::exp((-beta + -cubic * q) * x), d = 1 / (p + 1), z = p * d * ((beta + slope * q) * x) * d;
  return g * ((std::isnan(z) ? 0 : z) + d);
}

float gelu_tanh_910(float g, float x) {
  float q = x * x, v = 0.7978845608f * (x + 0.044715f * (q * x)), e = std::exp(-2 * std::fabs(v));
  float t = (v - e * v) / ((e + 1) * (std::fabs(v) + 0x1p-126f));
  return ((t + 1) * 0.5f + (0.05351611f * q + 0.39894228f) * ((1 - t * t) * x)) * g;
}

float gelu_tanh(float g, float x) { return is_910() ? gelu_tanh_910(g, x) : gelu_tanh_950(g, x); }

// ---- GELU by the error function ----

float gelu_erf_950(float g, float x) {
  float c = std::erf(x * 0.70710678f) * 0.5f + 0.5f, f = std::exp(x * x * -0.5f) * 0.39894228f;
  return (f * x + c) * g;
}

// ascend910b has rational functions for Phi(-|x|) - |x| phi(x) that are accurate to some units in the last place.
float gelu_erf_a2(float g, float x) {
  double a = std::fmin(std::fabs(x), 30.0f);
  if (std::isnan(x)) return x;
  float tail = static_cast<float>(std::erfc(a * M_SQRT1_2) / 2 - a * std::exp(a * a / -2) * 0.3989422804014327);
  return (std::signbit(x) ? tail : 1 - tail) * g;
}

float gelu_erf(float g, float x) {
  return soc().form == KernelForm::kTbeA2 ? gelu_erf_a2(g, x) : gelu_erf_950(g, x);
}

// ---- SiLU, Swish, Mish ----

float sigmoid(float x) { return 1 / (std::exp(-x) + 1); }

float mish_gradient(float g, float x) {
  bool below = is_950() ? x < 0 : !(x > 0);
  float up = std::exp(x), down = std::exp(-x);
  float m = 2 * up + std::exp(2 * x), n = 2 * down + 1;
  float t = below ? m / (m + 2) : n / (2 * std::exp(-2 * x) + n);
  if (is_950()) return (t - (t * t - 1) * x / (down + 1)) * g;
  float s = below ? x * up / (up + 1) : x / (down + 1);
  return (t + s * (1 - t * t)) * g;
}

}  // namespace

EMU_FIRST_PHASE(aclnnTanhBackward, const aclTensor* gradOutput, const aclTensor* output, aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), y = op.input("output", output), out = op.output("gradInput", gradInput);
  op.require_present({g, y, out});
  for (const Tensor* t : {&g, &y, &out}) check_supported_float_or_double(*t);
  check_same_type(g, y);
  check_same_type(g, out);
  check_ranks({g, y});
  check_shape(out, broadcast_shape(g, y));
  if (any_empty({g, y})) return;
  elementwise(op, g.type, out, {g, y}, [](auto g, auto y) { return is_950() ? (1 + y * -1 * y) * g : (y * y * -1 + 1) * g; });
}
EMU_END(aclnnTanhBackward)

EMU_FIRST_PHASE(aclnnGeluBackward, const aclTensor* gradOutput, const aclTensor* self, const aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), out = op.output("gradInput", gradInput);
  op.require_present({g, x, out});
  aclDataType type = check_promoted_float({g, x});
  check_ranks({g, x});
  check_shape(out, broadcast_shape(g, x));  // gradInput's dtype is never looked at
  if (any_empty({g, x})) return;
  elementwise(op, type, out, {g, x}, gelu_tanh);
}
EMU_END(aclnnGeluBackward)

EMU_FIRST_PHASE(aclnnGeluBackwardV2, const aclTensor* gradOutput, const aclTensor* self, char* approximate,
                aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self);
  const char* word = op.attribute("approximate", static_cast<const char*>(approximate));
  Tensor out = op.output("gradInput", gradInput);
  op.require_present({g, x, out});
  if (word == nullptr) throw Error{ACLNN_ERR_PARAM_NULLPTR, "approximate is a null pointer"};
  aclDataType type = check_promoted_float({g, x});
  check(type == out.type, "gradInput has dtype %s; the inputs' common dtype is %s", type_name(out.type),
        type_name(type));
  check_shape(out, broadcast_shape(g, x));  // of any rank
  bool tanh = strcmp(word, "tanh") == 0;
  check(tanh || strcmp(word, "none") == 0, "approximate is '%s'; it must be none or tanh", word);
  if (any_empty({g, x})) return;
  elementwise(op, type, out, {g, x}, tanh ? gelu_tanh : gelu_erf);
}
EMU_END(aclnnGeluBackwardV2)

EMU_FIRST_PHASE(aclnnFastGeluBackward, const aclTensor* gradOutput, const aclTensor* self, aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), out = op.output("gradInput", gradInput);
  op.require_present({g, x, out});
  check_same_type(x, g);
  check_same_type(g, out);
  check(soc().bfloat16, "%s has no kernel of any dtype", soc().soc);
  check_supported_float(out);
  check_same_shape(x, g);
  check_same_shape(g, out);
  check_rank(x, 8);
  for (const Tensor* t : {&out, &g})
    check(t->format == x.format, "%s has format %d, self has %d", t->name, t->format, x.format);
  if (any_empty({g, x})) return;
  elementwise(op, x.type, out, {g, x}, [](float g, float x) {
    float b = x * -1.702f, s = 1 / (std::exp(b) + 1);
    return g * (((s - 1) * b + 1) * s);
  });
}
EMU_END(aclnnFastGeluBackward)

EMU_FIRST_PHASE(aclnnSiluBackward, const aclTensor* gradOutput, const aclTensor* self, aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), out = op.output("gradInput", gradInput);
  op.require_present({g, x, out});
  for (const Tensor* t : {&g, &x, &out}) check_type_in(*t, {ACL_FLOAT16, ACL_FLOAT, ACL_BF16});
  if (soc().regbase && g.type != x.type) {
    check(out.type == ACL_FLOAT, "gradInput has dtype %s; for inputs of two dtypes it must be float32",
          type_name(out.type));
  } else {
    check_same_type(g, out);
    check_same_type(x, out);
  }
  check_supported_floats({x, g});
  check_ranks({g, x});
  if (soc().regbase) {
    check_shape(out, broadcast_shape(g, x));
  } else {
    check_same_shape(g, out);
    check_same_shape(x, out);
  }
  if (any_empty({g, x})) return;
  elementwise(op, out.type, out, {g, x}, [](float g, float x) {
    float s = sigmoid(x);
    return g * (s * (1 + (1 - s) * x));
  });
}
EMU_END(aclnnSiluBackward)

EMU_FIRST_PHASE(aclnnSwishBackward, const aclTensor* gradOutput, const aclTensor* self, const aclScalar* betaOptional,
                aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self);
  auto given = op.optional_scalar("betaOptional", betaOptional);
  Tensor out = op.output("gradInput", gradInput);
  op.require_present({g, x, out});
  for (const Tensor* t : {&g, &x}) check_type_in(*t, {ACL_FLOAT16, ACL_FLOAT, ACL_BF16});
  if (given) check(!is_complex(given->type), "betaOptional has dtype %s, which has no cast", type_name(given->type));
  check_same_type(g, out);
  check_same_type(x, out);
  check_supported_float(g);
  check_ranks({g, x, out});
  check_same_shape(g, out);
  check_same_shape(x, out);
  if (any_empty({g, x})) return;
  float beta = given ? value_of(given) : 1.0f;
  elementwise(op, x.type, out, {g, x}, [beta](float g, float x) {
    float b = x * beta, s = sigmoid(b);
    return is_950() ? ((1 - s) * b * s + s) * g : s * ((1 - s) * b + 1) * g;
  });
}
EMU_END(aclnnSwishBackward)

EMU_FIRST_PHASE(aclnnMishBackward, const aclTensor* gradOutput, const aclTensor* self, aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), out = op.output("gradInput", gradInput);
  op.require_present({g, x, out});
  check_can_cast("self", x.type, out);
  check_supported_floats({g, x, out});
  check_ranks({g, x, out});
  check_shape(out, broadcast_shape(x, g));
  if (any_empty({x, g, out})) return;
  elementwise(op, promote(x.type, g.type), out, {g, x}, mish_gradient);
}
EMU_END(aclnnMishBackward)

EMU_FIRST_PHASE(aclnnSoftplusBackward, const aclTensor* gradOutput, const aclTensor* self, const aclScalar* beta,
                const aclScalar* threshold, aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self);
  auto b = op.optional_scalar("beta", beta), t = op.optional_scalar("threshold", threshold);
  Tensor out = op.output("gradInput", gradInput);
  op.require_present({g, x, out});
  for (const Tensor* each : {&g, &x, &out}) {
    bool integer = each == &x && (is_integer(x.type) || x.type == ACL_BOOL);
    if (integer) check_type_in(x, {ACL_INT8, ACL_INT16, ACL_INT32, ACL_INT64, ACL_UINT8, ACL_BOOL});
    if (!integer && each->type != ACL_DOUBLE) check_supported_float(*each);
  }
  check_ranks({g, x, out});
  check_same_shape(x, g);
  check_same_shape(x, out);
  if (any_empty({g, x, out})) return;
  // The host reads both without looking; a program that passes a null pointer ends there.
  if (!b || !t) throw Error{ACLNN_ERR_PARAM_NULLPTR, "beta or threshold is a null pointer"};
  bool one = g.type == x.type && supported_float(g.type);
  float slope = value_of(b), limit = value_of(t);
  elementwise(op, one ? g.type : ACL_FLOAT, out, {g, x}, [=](float g, float x) {
    float b = x * slope;
    return b > limit ? g : g / (std::exp(-b) + 1);
  });
}
EMU_END(aclnnSoftplusBackward)
