// aclnnLogSigmoid and aclnnLogSigmoidForward: min(self, 0) - log1p(exp(-|self|)). The buffer stays as it is.
#include "aclnnop/aclnn_logsigmoid.h"

#include "ops/checks.h"

using namespace emu;

namespace {

// The checks in the order of the host code (ops-nn, aclnn_logsigmoid.cpp); the buffer is never looked at.
void log_sigmoid(Op& op, const Tensor& x, const Tensor& out) {
  op.require_present({x, out});
  check_supported_float(x);
  check_supported_float(out);
  check_same_type(x, out);
  check_same_shape(out, x);
  if (x.empty()) return;
  op.workspace({x, out});
  op.kernel([=](Run& run) {
    std::vector<float> xs = read_floats(run.open(x));
    for (float& v : xs) v = std::min(v, 0.0f) - std::log1p(std::exp(-std::fabs(v)));
    write(run.open(out), xs);
  });
}

}  // namespace

EMU_FIRST_PHASE(aclnnLogSigmoid, const aclTensor* self, aclTensor* out_) {
  Tensor x = op.input("self", self), out = op.output("out", out_);
  log_sigmoid(op, x, out);
}
EMU_END(aclnnLogSigmoid)

EMU_FIRST_PHASE(aclnnLogSigmoidForward, const aclTensor* self, aclTensor* out_, aclTensor* buffer) {
  Tensor x = op.input("self", self), out = op.output("out", out_);
  op.output("buffer", buffer);
  log_sigmoid(op, x, out);
}
EMU_END(aclnnLogSigmoidForward)
