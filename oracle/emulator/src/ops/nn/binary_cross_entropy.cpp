// aclnnBinaryCrossEntropy: -weight * (target * log(self) + (1 - target) * log(1 - self)), logs from -100 up.
#include "aclnnop/aclnn_binary_cross_entropy.h"

#include "ops/checks.h"

using namespace emu;

namespace {

float limited_log(float x) { return std::max(std::log(x), -100.0f); }

}  // namespace

EMU_C aclnnStatus aclnnBinaryCrossEntropyGetWorkspaceSize(const aclTensor* self, const aclTensor* target,
                                                          const aclTensor* weight, int64_t reduction, aclTensor* out_,
                                                          uint64_t* workspaceSize, aclOpExecutor** executor) {
  static FirstPhase phase("aclnnBinaryCrossEntropy");
  return phase(workspaceSize, executor, [&](Op& op) {
    Tensor x = op.input("self", self), y = op.input("target", target), w = op.input("weight", weight);
    op.attribute("reduction", reduction);
    Tensor out = op.output("out", out_);
    op.require_present({x, y, out});
    check_supported_float(x);
    check_same_type(y, x);
    check_same_shape(y, x);
    if (w.present)
      check(broadcasts_to(w.shape, x.shape), "weight has shape %s, self has %s", show(w.shape).c_str(),
            show(x.shape).c_str());
    check_reduction(reduction);
    check(reduction == 0 ? out.shape == x.shape : out.count() == 1, "out has shape %s", show(out.shape).c_str());
    if (x.empty()) return;
    op.workspace({x, y, w});
    op.kernel([=](Run& run) {
      std::vector<float> xs = read_floats(run.open(x)), ys = read_floats(run.open(y));
      std::vector<float> ws =
          w.present ? read_floats(broadcast(run.open(w), x.shape)) : std::vector<float>(xs.size(), 1.0f);
      double sum = 0;
      for (size_t i = 0; i < xs.size(); i++) {
        xs[i] = -ws[i] * (ys[i] * limited_log(xs[i]) + (1.0f - ys[i]) * limited_log(1.0f - xs[i]));
        sum += static_cast<double>(xs[i]);
      }
      if (reduction == 0) return write(run.open(out), xs);
      write(run.open(out), std::vector<double>{reduction == 1 ? sum / static_cast<double>(xs.size()) : sum});
    });
  });
}
EMU_SECOND_PHASE(aclnnBinaryCrossEntropy)
