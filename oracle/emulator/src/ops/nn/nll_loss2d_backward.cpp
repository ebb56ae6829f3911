// aclnnNLLLoss2dBackward: out[n, target[n, h, w], h, w] = -gradOutput * weight[target], / totalWeight for mean; 0
// everywhere else.
#include "ops/checks.h"

using namespace emu;

namespace {

void check_2d_types(const Tensor& g, const Tensor& x, const Tensor& t, const Tensor& w, const Tensor& total,
                 const Tensor& out) {
  check_supported_float(x);
  for (const Tensor* other : {&g, &w, &out, &total}) check_same_type(*other, x);
  check_type_in(t, {ACL_INT64, ACL_UINT8, ACL_INT32});
}

// The shapes in the order of the host code (ops-nn, aclnn_nll_loss2d_backward.cpp); an invalid reduction comes last.
void check_2d_shapes(const Tensor& g, const Tensor& x, const Tensor& t, const Tensor& w, const Tensor& total,
                  const Tensor& out, int64_t reduction) {
  if (reduction == kNone)
    check_same_shape(g, t);
  else
    check(g.rank() <= 1 && g.count() == 1, "gradOutput has shape %s; it must have one element and rank 1 at most",
          show(g.shape).c_str());
  check(x.rank() == 4, "self has rank %zu; it must be (N, C, H, W)", x.rank());
  check(t.rank() == 3, "target has rank %zu; it must be (N, H, W)", t.rank());
  check_shape(t, {x.shape[0], x.shape[2], x.shape[3]});
  check(w.count() == x.shape[1], "weight has shape %s; it must have %ld elements", show(w.shape).c_str(),
        static_cast<long>(x.shape[1]));
  check_same_shape(out, x);
  check(total.count() == 1, "totalWeight has shape %s; it must have one element", show(total.shape).c_str());
}

}  // namespace

EMU_FIRST_PHASE(aclnnNLLLoss2dBackward, const aclTensor* gradOutput, const aclTensor* self, const aclTensor* target,
                const aclTensor* weight, int64_t reduction, int64_t ignoreIndex, aclTensor* totalWeight,
                aclTensor* out_) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), t = op.input("target", target),
         w = op.input("weight", weight);
  op.attribute("reduction", reduction);
  op.attribute("ignoreIndex", ignoreIndex);
  Tensor total = op.input("totalWeight", totalWeight), out = op.output("out", out_);
  op.require_present({g, x, t, w, out, total});
  check_2d_types(g, x, t, w, total, out);
  check_2d_shapes(g, x, t, w, total, out, reduction);
  check_reduction(reduction);
  if (x.empty()) return;

  op.workspace({g, x, t, w, out}, static_cast<size_t>(x.count()) * sizeof(float));  // the host's transposed copies
  op.kernel([=](Run& run) {
    run.open(x);  // never read, but it must be there
    std::vector<float> gs = read_floats(run.open(g)), ws = read_floats(run.open(w));
    float sum = read_floats(run.open(total))[0];
    std::vector<int64_t> classes = read_integers(run.open(t));
    std::vector<float> result(static_cast<size_t>(x.count()), 0.0f);
    size_t image = static_cast<size_t>(x.shape[2] * x.shape[3]), count = static_cast<size_t>(x.shape[1]);
    bool is_950 = soc().form == KernelForm::k950;
    for (size_t i = 0; i < classes.size(); i++) {
      int64_t c = classes[i];
      if (c == ignoreIndex) continue;
      if (c < 0 || c >= x.shape[1]) {
        if (!is_950) continue;  // the older parts leave zeros
        throw Error{ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
                    text("target %zu is %ld, outside the %ld classes: the kernel writes out of bounds", i,
                         static_cast<long>(c), static_cast<long>(x.shape[1]))};
      }
      float gradient = gs[gs.size() == 1 ? 0 : i], scale = reduction == kMean ? gradient / sum : gradient;
      size_t place = (i / image * count + static_cast<size_t>(c)) * image + i % image;
      result[place] = -round_to(x.type, scale * ws[static_cast<size_t>(c)]);
    }
    write(run.open(out), result);
  });
}
EMU_END(aclnnNLLLoss2dBackward)
