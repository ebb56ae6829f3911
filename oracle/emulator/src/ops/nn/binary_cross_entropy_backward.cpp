// aclnnBinaryCrossEntropyBackward: out = gradOutput * weight * (self - target) / max(self * (1 - self), 1e-12), / numel
// for mean.
#include "aclnnop/aclnn_binary_cross_entropy_backward.h"

#include "ops/checks.h"

using namespace emu;

namespace {

constexpr float kEpsilon = 1e-12f;

// The ascend950 kernel: one multiplication first, then the division.
float bce_950(float g, float x, float y, float w, float mean) {
  float r = (g * (x - y)) / std::max(kEpsilon, (1.0f - x) * x);
  return r * w * mean;
}

// The built-in kernels of the older parts: division first, so that it overflows in other places.
float bce_tbe(float g, float x, float y, float w, float mean) {
  float r = (x - y) / std::max(kEpsilon, x * (x * -1.0f + 1.0f));
  return r * w * g * mean;
}

// The checks in the order of the host code (ops-nn, aclnn_binary_cross_entropy_backward.cpp).
void check_arguments(const Op& op, const Tensor& g, const Tensor& x, const Tensor& y, const Tensor& w,
                     const Tensor& out, int64_t reduction) {
  op.require_present({g, x, y, out});
  check_rank(out, 8);  // the inputs' ranks are never looked at
  for (const Tensor* t : {&x, &g, &y, &out}) check_supported_float(*t);
  if (w.present) check_supported_float(w);
  check(y.format == x.format, "target has format %d, self has %d", y.format, x.format);
  if (w.present) check(w.format == x.format, "weightOptional has format %d, self has %d", w.format, x.format);
  if (!x.empty()) {
    check_same_shape(out, x);
    for (const Tensor* t : {&y, &w, &g}) {
      if (t->present)
        check(broadcasts_to(t->shape, x.shape), "%s has shape %s, which does not broadcast to self's %s", t->name,
              show(t->shape).c_str(), show(x.shape).c_str());
    }
  }
  check_reduction(reduction);
}

}  // namespace

EMU_FIRST_PHASE(aclnnBinaryCrossEntropyBackward, const aclTensor* gradOutput, const aclTensor* self,
                const aclTensor* target, const aclTensor* weightOptional, int64_t reduction, aclTensor* out_) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), y = op.input("target", target);
  Tensor w = op.input("weightOptional", weightOptional);
  op.attribute("reduction", reduction);
  Tensor out = op.output("out", out_);
  check_arguments(op, g, x, y, w, out, reduction);
  if (x.empty()) return;

  aclDataType type = promote(promote(x.type, y.type), g.type);
  if (w.present) type = promote(type, w.type);
  op.workspace(
      {g, x, y, w, out},
      w.present ? 0 : static_cast<size_t>(x.count()) * aclDataTypeSize(x.type));  // ones for an absent weight
  float mean = reduction == kMean ? 1.0f / static_cast<float>(x.count()) : 1.0f;
  op.kernel([=](Run& run) {
    std::vector<float> gs = read_floats(broadcast(run.open(g), x.shape)), xs = read_floats(run.open(x)),
                       ys = read_floats(broadcast(run.open(y), x.shape));
    std::vector<float> ws =
        w.present ? read_floats(broadcast(run.open(w), x.shape)) : std::vector<float>(xs.size(), 1.0f);
    auto form = soc().form == KernelForm::k950 ? bce_950 : bce_tbe;
    // The kernel's own result has the promoted type; only then it is cast to out's.
    for (size_t i = 0; i < xs.size(); i++) xs[i] = round_to(type, form(gs[i], xs[i], ys[i], ws[i], mean));
    write(run.open(out), xs);
  });
}
EMU_END(aclnnBinaryCrossEntropyBackward)
