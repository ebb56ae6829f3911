// aclnnLogSigmoidBackward: gradInput = gradOutput / (1 + exp(self)). The buffer is never read.
#include "aclnnop/aclnn_logsigmoid_backward.h"

#include "ops/checks.h"

using namespace emu;

namespace {

float log_sigmoid_950(float x) {
  float z = std::exp(-std::fabs(x));
  return (x < 0 ? 1.0f : z) / (1.0f + z);
}

float log_sigmoid_tbe_a2(float x) {
  float z = std::exp(-std::fabs(x));
  return x < 0 ? 1.0f - z / (1.0f + z) : z / (1.0f + z);
}

float log_sigmoid_tbe_910(float x) { return std::exp(-std::log(1.0f + std::exp(x))); }

}  // namespace

EMU_FIRST_PHASE(aclnnLogSigmoidBackward, const aclTensor* gradOutput, const aclTensor* self, const aclTensor* buffer,
                aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), unused = op.input("buffer", buffer),
         out = op.output("gradInput", gradInput);
  op.require_present({g, x, unused, out});
  check_supported_float(g);
  check_supported_float(x);
  check_same_type(g, out);
  check_same_type(x, out);
  check_same_shape(g, out);
  check_same_shape(x, out);
  if (g.empty()) return;

  op.workspace({g, x, out});
  op.kernel([=](Run& run) {
    std::vector<float> gs = read_floats(run.open(g)), xs = read_floats(run.open(x));
    KernelForm which = soc().form;
    auto form = which == KernelForm::k950 ? log_sigmoid_950 : which == KernelForm::kTbeA2 ? log_sigmoid_tbe_a2 : log_sigmoid_tbe_910;
    for (size_t i = 0; i < xs.size(); i++) xs[i] = form(xs[i]) * gs[i];
    write(run.open(out), xs);
  });
}
EMU_END(aclnnLogSigmoidBackward)
