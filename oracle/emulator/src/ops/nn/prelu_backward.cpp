// aclnnPreluBackward: gradInput = gradOutput where self > 0, else gradOutput * weight; gradWeight = the sum per channel of
// gradOutput * self where self is not above 0.
#include "ops/nn/elementwise.h"

using namespace emu;

namespace {

struct Gradients {
  float input, term;
};

// ascend950 selects; the kernels before it multiply by a mask, a clamped number on ascend910.
Gradients gradients(float g, float x, float w) {
  if (is_950()) return x > 0 ? Gradients{g, 0.0f} : Gradients{g * w, g * x};
  float tiny = is_910() ? 0x1p-126f : 0.0f, mask = x > 0 ? (x < tiny ? x / tiny : 1.0f) : 0.0f;
  float input = (mask + (1 - mask) * w) * g;
  return {input, (1 - mask) * x * g + input * 0};
}

// The checks in the order of the host code (ops-nn, aclnn_prelu_backward.cpp); returns whether one weight is for all.
bool check_arguments(const Tensor& g, const Tensor& x, const Tensor& w, const Tensor& gradient, const Tensor& total) {
  check_supported_float(x);
  for (const Tensor* each : {&g, &w, &gradient, &total}) check_same_type(*each, x);
  check_ranks({g, x, w, gradient, total});
  check_same_shape(gradient, x);
  bool one = count_of(w.shape) == 1;
  int64_t channels = x.rank() > 1 ? x.shape[1] : 1;
  check(one || (x.rank() > 0 && count_of(w.shape) == channels), "weight has shape %s; self has %ld channels",
        show(w.shape).c_str(), static_cast<long>(channels));
  check_shape(total, one ? w.shape : Dims{channels});
  check(broadcasts_to(g.shape, x.shape), "gradOutput has shape %s, which does not broadcast to %s",
        show(g.shape).c_str(), show(x.shape).c_str());
  return one;
}

}  // namespace

EMU_FIRST_PHASE(aclnnPreluBackward, const aclTensor* gradOutput, const aclTensor* self, const aclTensor* weight,
                aclTensor* gradInput, aclTensor* gradWeight) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), w = op.input("weight", weight);
  Tensor gradient = op.output("gradInput", gradInput), total = op.output("gradWeight", gradWeight);
  op.require_present({g, x, w, gradient, total});
  bool one = check_arguments(g, x, w, gradient, total);
  if (any_empty({g, x, w})) return;
  int64_t channels = one ? 1 : x.shape[1], inner = 1;
  for (size_t axis = 2; axis < x.rank() && !one; axis++) inner *= x.shape[axis];
  aclDataType type = x.type;
  op.workspace({g, x, w, gradient, total}, static_cast<size_t>(count_of(x.shape)) * sizeof(float));
  op.kernel([=](Run& run) {
    auto gs = read_floats(broadcast(run.open(g), x.shape)), xs = read_floats(run.open(x)), ws = read_floats(run.open(w));
    std::vector<double> sums(static_cast<size_t>(channels), 0.0);  // would lose less than float32 in any order
    for (size_t i = 0; i < xs.size(); i++) {
      size_t channel = one ? 0 : i / static_cast<size_t>(inner) % static_cast<size_t>(channels);
      Gradients found = gradients(gs[i], xs[i], ws[channel]);
      gs[i] = found.input;
      sums[channel] += static_cast<double>(round_to(type, found.term));
    }
    write(run.open(gradient), gs);
    write(run.open(total), std::vector<float>(sums.begin(), sums.end()));
  });
}
EMU_END(aclnnPreluBackward)
