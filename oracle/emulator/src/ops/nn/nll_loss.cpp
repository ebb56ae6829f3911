// aclnnNLLLoss: -weight[target] * self[target], summed or divided by the sum of the weights, which is totalWeightOut.
#include "aclnnop/aclnn_nll_loss.h"

#include "ops/checks.h"

using namespace emu;

EMU_C aclnnStatus aclnnNLLLossGetWorkspaceSize(const aclTensor* self, const aclTensor* target, const aclTensor* weight,
                                               int64_t reduction, int64_t ignoreIndex, aclTensor* out_,
                                               aclTensor* totalWeightOut, uint64_t* workspaceSize,
                                               aclOpExecutor** executor) {
  static FirstPhase phase("aclnnNLLLoss");
  return phase(workspaceSize, executor, [&](Op& op) {
    Tensor x = op.input("self", self), t = op.input("target", target), w = op.input("weight", weight);
    op.attribute("reduction", reduction);
    op.attribute("ignoreIndex", ignoreIndex);
    Tensor out = op.output("out", out_), total = op.output("totalWeightOut", totalWeightOut);
    op.require_present({x, t, w, out, total});
    check_supported_float(x);
    check_same_type(w, x);
    check(x.rank() == 1 || x.rank() == 2, "self has rank %zu; it must be (N, C) or (C)", x.rank());
    int64_t classes = x.shape.back(), rows = x.rank() == 1 ? 1 : x.shape[0];
    check(t.count() == rows, "target has shape %s, self has %s", show(t.shape).c_str(), show(x.shape).c_str());
    check(w.rank() == 1 && w.shape[0] == classes, "weight has shape %s; it must be (%ld)", show(w.shape).c_str(),
          static_cast<long>(classes));
    check_reduction(reduction);
    bool each = reduction == 0 && x.rank() == 2;
    check(each ? out.count() == rows : out.count() == 1, "out has shape %s", show(out.shape).c_str());
    if (x.empty()) return;
    op.workspace({x, t, w});
    op.kernel([=](Run& run) {
      std::vector<float> xs = read_floats(run.open(x)), ws = read_floats(run.open(w)),
                         losses(static_cast<size_t>(rows), 0.0f);
      std::vector<int64_t> ts = read_integers(run.open(t));
      double sum = 0, weights = 0;
      for (size_t n = 0; n < losses.size(); n++) {
        if (ts[n] == ignoreIndex) continue;
        if (ts[n] < 0 || ts[n] >= classes) {
          throw Error{ACL_ERROR_RT_VECTOR_CORE_EXCEPTION, text("target[%zu] is %ld, outside the %ld classes", n,
                                                               static_cast<long>(ts[n]), static_cast<long>(classes))};
        }
        float factor = ws[static_cast<size_t>(ts[n])];
        losses[n] = -factor * xs[n * static_cast<size_t>(classes) + static_cast<size_t>(ts[n])];
        sum += static_cast<double>(losses[n]);
        weights += static_cast<double>(factor);
      }
      if (each)
        write(run.open(out), losses);
      else
        write(run.open(out), std::vector<double>{reduction == 1 ? sum / weights : sum});
      write(run.open(total), std::vector<double>{each ? 0.0 : weights});
    });
  });
}
EMU_SECOND_PHASE(aclnnNLLLoss)
