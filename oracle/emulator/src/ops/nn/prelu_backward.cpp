// aclnnPreluBackward: gradInput = self > 0 ? gradOutput : gradOutput * weight[channel]; gradWeight[channel] = the sum of
// self > 0 ? 0 : gradOutput * self.
#include "ops/checks.h"
#include "ops/nn/sums.h"

using namespace emu;

namespace {

// The checks in the order of the host code (ops-nn, aclnn_prelu_backward.cpp).
void check_arguments(const Tensor& g, const Tensor& x, const Tensor& w, const Tensor& dx, const Tensor& dw) {
  check_supported_float(x);
  for (const Tensor* t : {&g, &w, &dx, &dw}) check_same_type(*t, x);
  for (const Tensor* t : {&g, &x, &w, &dx, &dw}) check_rank(*t, 8);
  check_same_shape(dx, x);
  if (w.count() == 1) {
    check_same_shape(dw, w);
  } else {
    check(x.rank() >= 1, "self has rank 0 beside %ld weights", static_cast<long>(w.count()));
    int64_t channels = x.rank() == 1 ? 1 : x.shape[1];
    check(w.count() == channels, "weight has %ld elements beside %ld channels", static_cast<long>(w.count()),
          static_cast<long>(channels));
    check_shape(dw, {channels});
  }
  check(broadcasts_to(g.shape, x.shape), "gradOutput has shape %s, which does not broadcast to %s",
        show(g.shape).c_str(), show(x.shape).c_str());
}

struct Terms {
  float input, weight;
};

// ascend950: one product each, and a choice.
Terms form_950(float g, float x, float w) { return x > 0 ? Terms{g, 0.0f} : Terms{g * w, g * x}; }

// The older kernels choose by a mask that everything is multiplied by.
Terms form_tbe(float g, float x, float w) {
  float mask = x > 0 ? 1.0f : 0.0f, input = (mask + (1 - mask) * w) * g;
  return {input, (1 - mask) * x * g + input * 0};
}

}  // namespace

EMU_C aclnnStatus aclnnPreluBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                                     const aclTensor* weight, aclTensor* gradInput,
                                                     aclTensor* gradWeight, uint64_t* workspaceSize,
                                                     aclOpExecutor** executor) {
  static FirstPhase phase("aclnnPreluBackward");
  return phase(workspaceSize, executor, [&](Op& op) {
    Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), w = op.input("weight", weight),
           dx = op.output("gradInput", gradInput), dw = op.output("gradWeight", gradWeight);
    op.require_present({g, x, w, dx, dw});
    check_arguments(g, x, w, dx, dw);
    if (g.empty() || x.empty() || w.empty()) return;

    op.workspace({g, x, w, dx, dw}, static_cast<size_t>(x.count()) * sizeof(float));  // the terms of the sum
    op.kernel([=](Run& run) {
      std::vector<float> gs = read_floats(broadcast(run.open(g), x.shape)), xs = read_floats(run.open(x)),
                         ws = read_floats(run.open(w));
      size_t channels = ws.size(), inner = 1;
      for (size_t k = 2; k < x.rank(); k++) inner *= static_cast<size_t>(x.shape[k]);
      auto form = soc().form == KernelForm::k950 ? form_950 : form_tbe;
      for (size_t i = 0; i < xs.size(); i++) {
        Terms found = form(gs[i], xs[i], ws[channels == 1 ? 0 : i / inner % channels]);
        gs[i] = found.input;
        xs[i] = round_to(x.type, found.weight);  // a tensor of self's type
      }
      Dims to(x.rank(), 1);
      if (channels > 1) to[1] = static_cast<int64_t>(channels);
      write(run.open(dx), gs);
      write(run.open(dw), sum_to(xs, x.shape, to));
    });
  });
}
EMU_SECOND_PHASE(aclnnPreluBackward)
