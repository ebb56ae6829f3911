// aclnnGluBackward: with self = [a | b] along dim, out = [gradOut * s | gradOut * s * (1 - s) * a], s = sigmoid(b).
#include "ops/nn/elementwise.h"
#include "ops/nn/softmax_rows.h"

using namespace emu;

namespace {

// The checks in the order of the host code (ops-nn, aclnn_glu_backward.cpp).
void check_arguments(const Tensor& g, const Tensor& x, const Tensor& out, int64_t dim) {
  check(supported_float(x.type) || x.type == ACL_DOUBLE, "self has dtype %s", type_name(x.type));
  check_same_type(g, x);
  check_same_type(out, x);
  for (const Tensor* t : {&x, &out, &g}) check_rank(*t, 8);
  check_shape(g, half_along(x, dim));
  check_same_shape(out, x);
}

// The older route chains operators, each of which rounds to `type`; ascend950 has one kernel.
template <class Real>
void compute(const View& gradient, const View& self, const View& out, const Rows& rows, aclDataType type, bool chain) {
  auto stored = [type, chain](Real v) {
    return chain && type == ACL_BF16 ? static_cast<Real>(round_to(type, static_cast<float>(v))) : v;
  };
  std::vector<Real> gs = read_like(gradient, Real()), xs = read_like(self, Real());
  size_t half = static_cast<size_t>(rows.length / 2), inner = static_cast<size_t>(rows.inner), row = 0;
  rows.each([&](size_t start, size_t step) {
    size_t first = row / inner * half * inner + row % inner;  // of the gradient's row
    row++;
    for (size_t i = 0; i < half; i++) {
      Real &a = xs[start + i * step], &b = xs[start + (half + i) * step], g = gs[first + i * inner];
      Real s = stored(1 / (std::exp(-b) + 1)), product = stored(g * s);
      b = chain ? stored(stored(a - stored(a * s)) * product) : (1 - s) * s * a * g;
      a = product;
    }
  });
  write(out, xs);
}

}  // namespace

EMU_FIRST_PHASE(aclnnGluBackward, const aclTensor* gradOut, const aclTensor* self, int64_t dim, const aclTensor* out_) {
  Tensor g = op.input("gradOut", gradOut), x = op.input("self", self);
  op.attribute("dim", dim);
  Tensor out = op.output("out", out_);
  op.require_present({x, g, out});
  check_arguments(g, x, out, dim);
  if (x.empty()) return;

  Rows rows(x.shape, dim);
  op.workspace({g, x, out}, static_cast<size_t>(x.count()) * sizeof(float));
  op.kernel([=](Run& run) {
    bool chain = soc().form != KernelForm::k950 || x.type == ACL_DOUBLE;
    auto with = x.type == ACL_DOUBLE ? compute<double> : compute<float>;
    with(run.open(g), run.open(x), run.open(out), rows, x.type, chain);
  });
}
EMU_END(aclnnGluBackward)
