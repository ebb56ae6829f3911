// aclnnBinaryCrossEntropy: -weight * (target * log(self) + (1 - target) * log(1 - self)), logs from -100 up.
#include "aclnnop/aclnn_binary_cross_entropy.h"

#include <limits>

#include "ops/checks.h"

using namespace emu;

namespace {

float limited_log(float x) { return std::max(std::log(x), -100.0f); }

// The checks in the order of the host code (ops-nn, aclnn_binary_cross_entropy.cpp). Its null pointers are 561103.
void check_arguments(const Tensor& x, const Tensor& y, const Tensor& w, const Tensor& out, int64_t reduction) {
  for (const Tensor* t : {&x, &y, &out}) {
    if (!t->present) throw Error{ACLNN_ERR_INNER_NULLPTR, std::string(t->name) + " is a null pointer"};
  }
  for (const Tensor* t : {&x, &y, &out}) check_supported_float(*t);
  if (w.present) {
    check_supported_float(w);
    for (const Tensor* t : {&y, &w, &out}) check_same_type(*t, x);
  }
  check_same_shape(x, y);
  check_reduction(reduction);
}

}  // namespace

EMU_FIRST_PHASE(aclnnBinaryCrossEntropy, const aclTensor* self, const aclTensor* target, const aclTensor* weight,
                int64_t reduction, aclTensor* out_) {
  Tensor x = op.input("self", self), y = op.input("target", target), w = op.input("weight", weight);
  op.attribute("reduction", reduction);
  Tensor out = op.output("out", out_);
  check_arguments(x, y, w, out, reduction);
  if (x.empty()) return queue_fill(op, out, reduction == kMean ? std::numeric_limits<double>::quiet_NaN() : 0.0);
  bool one = (reduction != 0 || x.count() == 1) && out.count() == 1;  // whatever its rank is
  check(one || (reduction == kNone && out.shape == x.shape), "out has shape %s", show(out.shape).c_str());
  op.workspace({x, y, w});
  op.kernel([=](Run& run) {
    if (w.present && !broadcasts_to(w.shape, x.shape))  // no check looked at the shape
      throw Error{ACL_ERROR_RT_AICORE_EXCEPTION, "no kernel takes a weight of shape " + show(w.shape)};
    std::vector<float> xs = read_floats(run.open(x)), ys = read_floats(run.open(y));
    std::vector<float> ws =
        w.present ? read_floats(broadcast(run.open(w), x.shape)) : std::vector<float>(xs.size(), 1.0f);
    double sum = 0;
    for (size_t i = 0; i < xs.size(); i++) {
      xs[i] = -ws[i] * (ys[i] * limited_log(xs[i]) + (1.0f - ys[i]) * limited_log(1.0f - xs[i]));
      sum += static_cast<double>(xs[i]);
    }
    if (reduction == kNone) return write(run.open(out), xs);
    write(run.open(out), std::vector<double>{reduction == kMean ? sum / static_cast<double>(xs.size()) : sum});
  });
}
EMU_END(aclnnBinaryCrossEntropy)
