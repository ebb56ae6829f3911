// aclnnSoftmax: exp(self - max) / sum(exp(self - max)) over dim. aclnnLogSoftmax: its logarithm.
#include "aclnnop/aclnn_softmax.h"

#include "ops/checks.h"
#include "ops/nn/softmax_rows.h"

using namespace emu;

namespace {

void softmax(Op& op, const Tensor& x, const Tensor& out, int64_t dim, bool logarithm) {
  op.require_present({x, out});
  check_supported_float(x);
  check_dim(dim, x.rank());
  check_same_shape(out, x);
  if (x.empty()) return;
  Rows rows(x.shape, dim);
  op.workspace({x, out});
  op.kernel([=](Run& run) {
    std::vector<float> xs = read_floats(run.open(x));
    rows.each([&](size_t start, size_t step) {
      size_t end = start + static_cast<size_t>(rows.length) * step;
      float largest = xs[start];
      for (size_t at = start; at < end; at += step) largest = std::max(largest, xs[at]);
      double sum = 0;
      for (size_t at = start; at < end; at += step) sum += std::exp(static_cast<double>(xs[at] - largest));
      float log_sum = static_cast<float>(std::log(sum));
      for (size_t at = start; at < end; at += step) {
        float shifted = xs[at] - largest;
        xs[at] = logarithm ? shifted - log_sum : static_cast<float>(std::exp(static_cast<double>(shifted)) / sum);
      }
    });
    write(run.open(out), xs);
  });
}

}  // namespace

EMU_C aclnnStatus aclnnSoftmaxGetWorkspaceSize(const aclTensor* self, int64_t dim, aclTensor* out,
                                               uint64_t* workspaceSize, aclOpExecutor** executor) {
  static FirstPhase phase("aclnnSoftmax");
  return phase(workspaceSize, executor, [&](Op& op) {
    Tensor x = op.input("self", self);
    op.attribute("dim", dim);
    softmax(op, x, op.output("out", out), dim, false);
  });
}
EMU_SECOND_PHASE(aclnnSoftmax)

EMU_C aclnnStatus aclnnLogSoftmaxGetWorkspaceSize(const aclTensor* self, int64_t dim, aclTensor* out,
                                                  uint64_t* workspaceSize, aclOpExecutor** executor) {
  static FirstPhase phase("aclnnLogSoftmax");
  return phase(workspaceSize, executor, [&](Op& op) {
    Tensor x = op.input("self", self);
    op.attribute("dim", dim);
    softmax(op, x, op.output("out", out), dim, true);
  });
}
EMU_SECOND_PHASE(aclnnLogSoftmax)

// aclnnLogSoftmaxBackward: gradOutput - exp(output) * sum(gradOutput over dim), the partner of a log_softmax +
// nll_loss.
EMU_C aclnnStatus aclnnLogSoftmaxBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* output,
                                                          int64_t dim, aclTensor* out_, uint64_t* workspaceSize,
                                                          aclOpExecutor** executor) {
  static FirstPhase phase("aclnnLogSoftmaxBackward");
  return phase(workspaceSize, executor, [&](Op& op) {
    Tensor g = op.input("gradOutput", gradOutput), y = op.input("output", output), out = op.output("out", out_);
    op.require_present({g, y, out});
    check_same_shape(y, g);
    check_same_shape(out, g);
    check_dim(op.attribute("dim", dim), g.rank());
    if (g.empty()) return;
    Rows rows(g.shape, dim);
    op.workspace({g, y, out});
    op.kernel([=](Run& run) {
      std::vector<float> gs = read_floats(run.open(g)), ys = read_floats(run.open(y));
      rows.each([&](size_t start, size_t step) {
        size_t end = start + static_cast<size_t>(rows.length) * step;
        double sum = 0;
        for (size_t at = start; at < end; at += step) sum += static_cast<double>(gs[at]);
        for (size_t at = start; at < end; at += step)
          gs[at] = static_cast<float>(static_cast<double>(gs[at]) - std::exp(static_cast<double>(ys[at])) * sum);
      });
      write(run.open(out), gs);
    });
  });
}
EMU_SECOND_PHASE(aclnnLogSoftmaxBackward)
