// aclnnLogSoftmaxBackward: out = gradOutput - exp(output) * sum(gradOutput over dim).
#include "ops/checks.h"
#include "ops/nn/softmax_rows.h"

using namespace emu;

namespace {

// The checks in the order of the host code (ops-nn, aclnn_logsoftmax_backward.cpp): shapes before dim; out's dtype is
// free.
void check_log_softmax(const Tensor& g, const Tensor& y, const Tensor& out, int64_t dim) {
  check_supported_float(y);
  check_supported_float(g);
  check_same_type(g, y);
  check_rank(g, 8);
  check_rank(y, 8);
  check_same_shape(g, y);
  check_same_shape(out, g);
  check_dim(dim, g.rank());
}

}  // namespace

EMU_FIRST_PHASE(aclnnLogSoftmaxBackward, const aclTensor* gradOutput, const aclTensor* output, int64_t dim,
                aclTensor* out_) {
  Tensor g = op.input("gradOutput", gradOutput), y = op.input("output", output);
  op.attribute("dim", dim);
  Tensor out = op.output("out", out_);
  op.require_present({y, g, out});
  bool checked_when_empty = soc().regbase && follows("master");  // in no release
  if (!checked_when_empty && (g.empty() || y.empty())) return;
  check_log_softmax(g, y, out, dim);
  if (g.empty()) return;

  Rows rows(g.shape, dim);
  op.workspace({g, y, out});
  op.kernel([=](Run& run) {
    std::vector<float> gs = read_floats(run.open(g)), ys = read_floats(run.open(y)), terms;
    rows.each([&](size_t start, size_t step) {
      size_t length = static_cast<size_t>(rows.length);
      terms.resize(length);
      for (size_t i = 0; i < length; i++) terms[i] = gs[start + i * step];
      float sum = fold(terms);
      for (size_t i = 0, at = start; i < length; i++, at += step)
        gs[at] = round_to(g.type, gs[at] - std::exp(ys[at]) * sum);  // a product and a difference, not fused
    });
    write(run.open(out), gs);
  });
}
EMU_END(aclnnLogSoftmaxBackward)
