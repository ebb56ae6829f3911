// aclnnNLLLoss and, of images, aclnnNLLLoss2d: -weight[target] * self[target], summed or divided by the sum of the
// weights, which is totalWeightOut.
#include "aclnnop/aclnn_nll_loss.h"

#include <limits>

#include "ops/checks.h"

using namespace emu;

namespace {

struct LossTensors {
  Tensor x, t, w, out, total;
};

void check_shapes(const LossTensors& g, int64_t reduction) {
  check(g.x.rank() == 1 || g.x.rank() == 2, "self has rank %zu; it must be (N, C) or (C)", g.x.rank());
  bool one = g.x.rank() == 1 && g.t.rank() == 0, many = g.x.rank() == 2 && g.t.rank() == 1;
  check(one || (many && g.t.shape[0] == g.x.shape[0]), "target has shape %s, self has %s", show(g.t.shape).c_str(),
        show(g.x.shape).c_str());
  int64_t classes = g.x.shape.back();
  check(g.w.rank() == 1 && g.w.shape[0] == classes, "weight has shape %s; it must be (%ld)", show(g.w.shape).c_str(),
        static_cast<long>(classes));
  if (reduction == kNone && g.x.rank() == 2)
    check_shape(g.out, {g.x.shape[0]});
  else
    check(g.out.rank() <= 1 && g.out.count() == 1, "out has shape %s; it must have one element",
          show(g.out.shape).c_str());
  check(g.total.count() == 1, "totalWeightOut has shape %s; it must have one element", show(g.total.shape).c_str());
  check(classes > 0 || g.t.count() == 0, "there are no classes, and target has shape %s", show(g.t.shape).c_str());
}

// The checks in the order of the host code (ops-nn, aclnn_nll_loss.cpp).
void check_arguments(const Op& op, const LossTensors& g, int64_t reduction) {
  op.require_present({g.x, g.t, g.w, g.out, g.total});
  check_same_type(g.w, g.x);
  check_can_cast("self", g.x.type, g.out);
  check_can_cast("self", g.x.type, g.total);
  check_supported_float(g.x);
  check_type_in(g.t, {ACL_INT64, ACL_UINT8, ACL_INT32});
  check_reduction(reduction);
}

// What both functions are given, checked as far as the layout does not matter.
LossTensors arguments(Op& op, const aclTensor* self, const aclTensor* target, const aclTensor* weight, int64_t reduction,
                int64_t ignoreIndex, aclTensor* out, aclTensor* totalWeightOut) {
  Tensor x = op.input("self", self), t = op.input("target", target), w = op.input("weight", weight);
  op.attribute("reduction", reduction);
  op.attribute("ignoreIndex", ignoreIndex);
  LossTensors given{x, t, w, op.output("out", out), op.output("totalWeightOut", totalWeightOut)};
  check_arguments(op, given, reduction);
  return given;
}

// Of images (aclnn_nll_loss2d.cpp): self (N, C, H, W), target (N, H, W).
void check_images(const LossTensors& g, int64_t reduction) {
  check(g.x.rank() == 4, "self has rank %zu; it must be (N, C, H, W)", g.x.rank());
  int64_t classes = g.x.shape[1];
  check(g.w.rank() > 0 && g.w.shape[0] == classes, "weight has shape %s; it must be (%ld)", show(g.w.shape).c_str(),
        static_cast<long>(classes));
  check_shape(g.t, {g.x.shape[0], g.x.shape[2], g.x.shape[3]});
  if (reduction == kNone)
    check_shape(g.out, g.t.shape);
  else
    check(g.out.count() == 1, "out has shape %s; it must have one element", show(g.out.shape).c_str());
  check(g.total.count() == 1, "totalWeightOut has shape %s; it must have one element", show(g.total.shape).c_str());
}

// What no elements give.
void fill_empty(Op& op, const LossTensors& g, int64_t reduction) {
  if (reduction == kNone) return;
  op.kernel([reduction, out = g.out, total = g.total](Run& run) {
    write(run.open(out), std::vector<double>{reduction == kMean ? std::numeric_limits<double>::quiet_NaN() : 0.0});
    write(run.open(total), std::vector<double>{0.0});
  });
}

// One loss for each target: of self (N, classes, inner...), or of (classes).
void queue(Op& op, const LossTensors& g, int64_t classes, int64_t reduction, int64_t ignoreIndex) {
  size_t inner = static_cast<size_t>(g.x.rank() > 2 ? g.x.shape[2] * g.x.shape[3] : 1);
  // Before ascend950 the host promotes float16 to float32; what is summed is rounded to the kernel's type.
  aclDataType type = !soc().regbase && g.x.type == ACL_FLOAT16 ? ACL_FLOAT : g.x.type;
  op.workspace({g.x, g.t, g.w});
  op.kernel([=, x = g.x, t = g.t, w = g.w, out = g.out, total = g.total](Run& run) {
    std::vector<float> xs = read_floats(run.open(x)), ws = read_floats(run.open(w));
    std::vector<int64_t> ts = read_integers(run.open(t));
    std::vector<float> losses(ts.size(), 0.0f);
    double sum = 0, weights = 0;
    for (size_t n = 0; n < losses.size(); n++) {
      if (ts[n] == ignoreIndex) continue;
      if (ts[n] < 0 || ts[n] >= classes) {
        throw Error{ACL_ERROR_RT_VECTOR_CORE_EXCEPTION, text("target[%zu] is %ld, outside the %ld classes", n,
                                                             static_cast<long>(ts[n]), static_cast<long>(classes))};
      }
      size_t c = static_cast<size_t>(ts[n]);
      losses[n] = -ws[c] * xs[(n / inner * static_cast<size_t>(classes) + c) * inner + n % inner];
      sum += static_cast<double>(losses[n]);
      weights += static_cast<double>(ws[c]);
    }
    if (reduction == kNone) {
      for (float& loss : losses) loss = round_to(type, loss);
      return write(run.open(out), losses);
    }
    write(run.open(out), std::vector<float>{round_to(type, static_cast<float>(reduction == kMean ? sum / weights : sum))});
    write(run.open(total), std::vector<float>{round_to(type, static_cast<float>(weights))});
  });
}

}  // namespace

EMU_FIRST_PHASE(aclnnNLLLoss, const aclTensor* self, const aclTensor* target, const aclTensor* weight,
                int64_t reduction, int64_t ignoreIndex, aclTensor* out, aclTensor* totalWeightOut) {
  LossTensors given = arguments(op, self, target, weight, reduction, ignoreIndex, out, totalWeightOut);
  check_shapes(given, reduction);
  if (given.x.empty()) return fill_empty(op, given, reduction);
  queue(op, given, given.x.shape.back(), reduction, ignoreIndex);
}
EMU_END(aclnnNLLLoss)

EMU_FIRST_PHASE(aclnnNLLLoss2d, const aclTensor* self, const aclTensor* target, const aclTensor* weight,
                int64_t reduction, int64_t ignoreIndex, aclTensor* out, aclTensor* totalWeightOut) {
  LossTensors given = arguments(op, self, target, weight, reduction, ignoreIndex, out, totalWeightOut);
  check_images(given, reduction);
  if (given.x.empty() || given.t.empty() || given.w.empty()) return fill_empty(op, given, reduction);
  queue(op, given, given.x.shape[1], reduction, ignoreIndex);
}
EMU_END(aclnnNLLLoss2d)
