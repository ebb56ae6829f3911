// Gradients of losses whose inputs broadcast: MSE, L1, smooth L1, binary cross entropy with logits, soft margin. Of each
// the checks in the order of the host code (ops-nn), and the orders in which public kernels compute.
#include "ops/nn/elementwise.h"

using namespace emu;

namespace {

// What a mean multiplies with; 1 for the other reductions.
float mean_factor(int64_t reduction, int64_t count) {
  return reduction == kMean ? static_cast<float>(1.0 / static_cast<double>(count)) : 1.0f;
}

// ascend950: one gradient has a form of its own.
float smooth_l1_950(float d, float beta, bool one_gradient) {
  if (one_gradient) return std::fabs(d) < beta ? d / beta : d > 0 ? 1.0f : d < 0 ? -1.0f : d;
  float inverse = beta < 1e-6f ? std::numeric_limits<float>::quiet_NaN() : 1 / beta;
  bool inside = std::fabs(d) <= beta;
  return (d > beta ? 1.0f : 0.0f) - (d < -beta ? 1.0f : 0.0f) + (inside || std::isnan(d) ? d * inverse : 0.0f);
}

float smooth_l1_tbe(float d, float beta) {
  if (std::fabs(d) < beta || std::isnan(d)) return d / (beta + 1e-6f);
  return d > 0 ? 1.0f : d < 0 ? -1.0f : 0.0f;
}

}  // namespace

EMU_FIRST_PHASE(aclnnMseLossBackward, const aclTensor* gradOutput, const aclTensor* self, const aclTensor* target,
                int64_t reduction, aclTensor* output) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), t = op.input("target", target);
  op.attribute("reduction", reduction);
  Tensor out = op.output("out", output);
  op.require_present({g, x, t, out});
  check_same_type(g, x);
  check_same_type(t, x);
  check_supported_floats({x, out});
  check_reduction(reduction);
  check_ranks({g, x, t});
  check_shape(out, broadcast_shape(g, x, t));
  if (any_empty({x, g, t})) return;
  float factor = 2 * mean_factor(reduction, x.count());
  elementwise(op, x.type, out, {g, x, t}, [factor](float g, float x, float t) { return (x - t) * factor * g; });
}
EMU_END(aclnnMseLossBackward)

EMU_FIRST_PHASE(aclnnL1LossBackward, const aclTensor* gradOutput, const aclTensor* self, const aclTensor* target,
                int64_t reduction, aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), t = op.input("target", target);
  op.attribute("reduction", reduction);
  Tensor out = op.output("gradInput", gradInput);
  op.require_present({g, x, t, out});
  check_reduction(reduction);
  aclDataType type = promote(promoted(g, x), t.type);
  check_can_cast("the common dtype of the inputs", type, out);
  type = check_promoted_float({g, x, t});
  check_ranks({x, t, g, out});
  Dims shape = broadcast_shape(g, x, t);
  check_shape(out, shape);
  if (any_empty({x, g, t})) return;
  float factor = mean_factor(reduction, count_of(shape));
  elementwise(op, type, out, {g, x, t}, [factor](float g, float x, float t) {
    float other = is_950() || x == t ? 0.0f : -1.0f;  // of NaN; the older kernels ask for more and for different
    return (x > t ? 1.0f : x < t ? -1.0f : other) * (g * factor);
  });
}
EMU_END(aclnnL1LossBackward)

EMU_FIRST_PHASE(aclnnSmoothL1LossBackward, const aclTensor* gradOut, const aclTensor* self, const aclTensor* target,
                int64_t reduction, float beta, aclTensor* gradInput) {
  Tensor g = op.input("gradOut", gradOut), x = op.input("self", self), t = op.input("target", target);
  op.attribute("reduction", reduction);
  op.attribute("beta", static_cast<double>(beta));
  Tensor out = op.output("gradInput", gradInput);
  op.require_present({g, x, t, out});
  check_supported_floats({g, x, t, out});
  check_ranks({g, x, t});
  check_reduction(reduction);
  check(beta >= 0, "beta is %g; it must be at least 0", static_cast<double>(beta));
  aclDataType type = check_promoted_float({g, x, t});
  check_shape(out, broadcast_shape(g, x, t));
  if (any_empty({g, x, t})) return;
  float factor = mean_factor(reduction, x.count());
  bool one = g.count() == 1;
  elementwise(op, type, out, {g, x, t}, [=](float g, float x, float t) {
    float v = is_950() ? smooth_l1_950(x - t, beta, one) : smooth_l1_tbe(x - t, beta);
    return v * g * factor;
  });
}
EMU_END(aclnnSmoothL1LossBackward)

EMU_FIRST_PHASE(aclnnBinaryCrossEntropyWithLogitsBackward, const aclTensor* gradOutput, const aclTensor* self,
                const aclTensor* target, const aclTensor* weightOptional, const aclTensor* posWeightOptional,
                int64_t reduction, aclTensor* output) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), t = op.input("target", target),
         w = op.input("weightOptional", weightOptional), p = op.input("posWeightOptional", posWeightOptional);
  op.attribute("reduction", reduction);
  Tensor out = op.output("out", output);
  op.require_present({g, x, t, out});
  check_rank(out, 8);  // the inputs' ranks are never looked at
  check_supported_floats({g, x, t, out});
  for (const Tensor* each : {&w, &p}) {
    if (each->present) check_supported_float(*each);
  }
  check_same_type(out, t);
  for (const Tensor* each : {&t, &out})
    check(each->format == x.format, "%s has format %d, self has %d", each->name, each->format, x.format);
  if (!x.empty()) {
    check_same_shape(t, x);
    check_same_shape(out, x);
    for (const Tensor* each : {&g, &w, &p})
      check(!each->present || broadcasts_to(each->shape, x.shape), "%s has shape %s, which does not broadcast to self's %s",
            each->name, show(each->shape).c_str(), show(x.shape).c_str());
  }
  check_reduction(reduction);
  if (x.empty()) return;
  aclDataType type = promote(promote(x.type, t.type), g.type);
  for (const Tensor* each : {&w, &p}) {
    if (each->present) type = promote(type, each->type);
  }
  float factor = mean_factor(reduction, x.count());
  elementwise(op, type, out, {g, x, t, w, p}, [factor](float g, float x, float t, float w, float p) {
    if (is_910()) x = x < -88.7f ? -88.7f : x;
    float s = 1 / (std::exp(-x) + 1), q = p * t;
    return ((q + 1 - t) * s - q) * g * w * factor;
  });
}
EMU_END(aclnnBinaryCrossEntropyWithLogitsBackward)

EMU_FIRST_PHASE(aclnnSoftMarginLossBackward, const aclTensor* gradOutput, const aclTensor* self,
                const aclTensor* target, int64_t reduction, aclTensor* output) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), t = op.input("target", target);
  op.attribute("reduction", reduction);
  Tensor out = op.output("out", output);
  op.require_present({g, x, t, out});
  check_supported_floats({g, x, t, out});
  check_ranks({g, x, t});
  Dims shape = broadcast_shape(g, x, t);
  check_shape(out, shape);  // reduction is never looked at
  if (x.empty()) return;
  float factor = mean_factor(reduction, count_of(shape));
  elementwise(op, promote(promote(g.type, x.type), t.type), out, {g, x, t}, [factor](float g, float x, float t) {
    if (is_950()) {
      float e = std::exp(x * t * -1);
      return -t * e / (e + 1) * (g * factor);
    }
    float e = std::exp(x * -t);
    return e / (e + 1) * -t * g * factor;
  });
}
EMU_END(aclnnSoftMarginLossBackward)
