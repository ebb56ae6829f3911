// aclnnKlDivBackward: out = -(T * gradOutput) * c, T = target or exp(target); summed to self's shape where target is
// larger.
#include "ops/checks.h"
#include "ops/reduced.h"

using namespace emu;

namespace {

// The checks in the order of the host code (ops-nn, aclnn_kl_div_backward.cpp); returns the common shape.
Dims check_arguments(const Tensor& g, const Tensor& x, const Tensor& t, const Tensor& out) {
  check_can_cast("self", x.type, out);
  for (const Tensor* each : {&g, &x, &t, &out}) check_supported_float(*each);
  for (const Tensor* each : {&g, &x, &t, &out}) check_rank(*each, 8);
  Dims common = broadcast_shape(x, t);
  check(broadcasts_to(g.shape, common), "gradOutput has shape %s, which does not broadcast to %s",
        show(g.shape).c_str(), show(common).c_str());
  check_same_shape(out, x);
  return common;
}

float factor(int64_t reduction, const Dims& common) {
  if (reduction == kMean) return static_cast<float>(1.0 / static_cast<double>(count_of(common)));
  if (reduction == kBatchMean) return common.empty() ? 1.0f : static_cast<float>(1.0 / static_cast<double>(common[0]));
  return 1.0f;
}

// Sums of the terms of shape `from` that share an element of `to` (right-aligned, its dims equal or 1).
std::vector<float> sum_to(const std::vector<float>& terms, const Dims& from, const Dims& to) {
  Mask over(from.size(), true);
  for (size_t k = 1; k <= to.size(); k++) over[from.size() - k] = to[to.size() - k] == 1;
  return Reduced(from, over).sum([&](size_t i) { return terms[i]; });
}

}  // namespace

EMU_FIRST_PHASE(aclnnKlDivBackward, const aclTensor* gradOutput, const aclTensor* self, const aclTensor* target,
                int64_t reduction, bool logTarget, aclTensor* out_) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), t = op.input("target", target);
  op.attribute("reduction", reduction);
  op.attribute("logTarget", logTarget);
  Tensor out = op.output("out", out_);
  op.require_present({g, x, t, out});
  Dims common = check_arguments(g, x, t, out);
  if (x.empty()) return;

  bool half = g.type == ACL_FLOAT16 && x.type == ACL_FLOAT16 && t.type == ACL_FLOAT16;
  half = half && follows("9.0");  // before, the host widens all
  aclDataType type = half ? ACL_FLOAT16 : ACL_FLOAT;
  aclDataType step = half && soc().form != KernelForm::k950 ? ACL_FLOAT16 : ACL_FLOAT;  // of every operation
  float scale = round_to(step, factor(reduction, common));
  op.workspace({g, x, t, out}, static_cast<size_t>(count_of(common)) * sizeof(float));
  op.kernel([=](Run& run) {
    run.open(x);  // never read, but it must be there
    std::vector<float> gs = read_floats(broadcast(run.open(g), common)), ts = read_floats(broadcast(run.open(t), common));
    for (size_t i = 0; i < gs.size(); i++) {
      float value = logTarget ? round_to(step, std::exp(ts[i])) : ts[i];
      gs[i] = round_to(type, -round_to(step, value * gs[i]) * scale);
    }
    if (common != x.shape) gs = sum_to(gs, common, x.shape);
    for (float& value : gs) value = round_to(type, value);
    write(run.open(out), gs);
  });
}
EMU_END(aclnnKlDivBackward)
