// aclnnSoftmaxBackward: out = gradOutput * output - sum(gradOutput * output over dim) * output.
#include "aclnnop/aclnn_softmax_backward.h"

#include "ops/checks.h"
#include "ops/nn/softmax_rows.h"

using namespace emu;

namespace {

// The older vector unit: 64 lanes at a time as a tree, the blocks' sums again the same way.
float lanes(std::vector<float>& terms) {
  constexpr size_t kLanes = 64;
  while (terms.size() > 1) {
    size_t blocks = 0;
    for (size_t from = 0; from < terms.size(); from += kLanes) {
      size_t n = std::min(kLanes, terms.size() - from);
      for (size_t step = 1; step < n; step *= 2) {
        for (size_t i = 0; i + step < n; i += 2 * step) terms[from + i] += terms[from + i + step];
      }
      terms[blocks++] = terms[from];
    }
    terms.resize(blocks);
  }
  return terms.empty() ? 0.0f : terms[0];
}

void check_softmax(const Tensor& g, const Tensor& y, const Tensor& out, int64_t dim) {
  check_supported_float(g);
  check_supported_float(y);
  check_same_type(y, g);
  check_dim(dim, g.rank());
  check_rank(g, 8);
  check_same_shape(y, g);
  check_same_shape(out, g);
}

}  // namespace

EMU_FIRST_PHASE(aclnnSoftmaxBackward, const aclTensor* gradOutput, const aclTensor* output, int64_t dim,
                aclTensor* out_) {
  Tensor g = op.input("gradOutput", gradOutput), y = op.input("output", output);
  op.attribute("dim", dim);
  Tensor out = op.output("out", out_);
  op.require_present({g, y, out});
  bool checked_when_empty = soc().regbase && follows("master");  // in no release
  if (!checked_when_empty && (g.empty() || y.empty())) return;
  check_softmax(g, y, out, dim);
  if (g.empty()) return;

  Rows rows(g.shape, dim);
  op.workspace({g, y, out}, static_cast<size_t>(count_of({rows.outer, rows.inner})) * sizeof(float));  // one sum a row
  op.kernel([=](Run& run) {
    std::vector<float> gs = read_floats(run.open(g)), ys = read_floats(run.open(y)), terms;
    bool is_950 = soc().form == KernelForm::k950;
    rows.each([&](size_t start, size_t step) {
      size_t length = static_cast<size_t>(rows.length);
      terms.resize(length);
      for (size_t i = 0; i < length; i++) terms[i] = gs[start + i * step] * ys[start + i * step];
      float sum = is_950 ? fold(terms) : lanes(terms);
      for (size_t i = 0, at = start; i < length; i++, at += step) {
        // 950 multiplies into the product (one rounding); the others multiply the difference.
        float r = is_950 ? std::fma(-ys[at], sum, gs[at] * ys[at]) : (gs[at] - sum) * ys[at];
        gs[at] = round_to(g.type, r);
      }
    });
    write(run.open(out), gs);
  });
}
EMU_END(aclnnSoftmaxBackward)
