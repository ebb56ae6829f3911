// aclnnSigmoidBackward: gradInput = gradOutput * (1 - output) * output; conj((1 - output) * output) * gradOutput for
// complex types.
#include "aclnnop/aclnn_sigmoid_backward.h"

#include "ops/checks.h"

using namespace emu;

namespace {

void check_listed(const char* name, aclDataType type) {
  check_type_in(name, type, {ACL_FLOAT, ACL_FLOAT16, ACL_DOUBLE, ACL_COMPLEX64, ACL_COMPLEX128, ACL_BF16});
}

// The checks in the order of the host code (ops-nn, aclnn_sigmoid_backward.cpp); returns the type of the computation.
aclDataType check_arguments(const Op& op, const Tensor& g, const Tensor& y, const Tensor& out) {
  op.require_present({g, y, out});
  for (const Tensor* t : {&g, &y, &out}) check_listed(t->name, t->type);
  check(g.type != ACL_BF16 || soc().bfloat16, "%s has dtype bfloat16, which %s does not support", g.name, soc().soc);
  check_rank(g, 8);
  check_rank(y, 8);
  aclDataType type = promoted(g, y);
  check_listed("the common dtype of gradOutput and output", type);
  check_can_cast("the common dtype of gradOutput and output", type, out);
  check_shape(out, broadcast_shape(g, y));
  return type;
}

// The AI CPU's kernel of complex types, in the precision of its type.
template <class Real>
void compute_complex(const View& g, const View& y, const View& out) {
  using Number = std::complex<Real>;
  std::vector<std::complex<double>> gs = read_complexes(g), ys = read_complexes(y);
  for (size_t i = 0; i < gs.size(); i++) {
    Number value(ys[i]), slope = (Number(1) - value) * value;
    gs[i] = std::complex<double>(std::conj(slope) * Number(gs[i]));
  }
  write(out, gs);
}

// The kernels of real types; every product has one order: (gradOutput * (1 - output)) * output.
template <class Real>
std::vector<Real> compute(std::vector<Real> gs, const std::vector<Real>& ys) {
  for (size_t i = 0; i < gs.size(); i++) gs[i] = gs[i] * (Real(1) - ys[i]) * ys[i];
  return gs;
}

}  // namespace

EMU_FIRST_PHASE(aclnnSigmoidBackward, const aclTensor* gradOutput, const aclTensor* output, aclTensor* gradInput) {
  Tensor g = op.input("gradOutput", gradOutput), y = op.input("output", output),
         out = op.output("gradInput", gradInput);
  aclDataType type = check_arguments(op, g, y, out);
  if (g.empty() || y.empty()) return;

  op.workspace({g, y, out});
  op.kernel([=](Run& run) {
    View gs = broadcast(run.open(g), out.shape), ys = broadcast(run.open(y), out.shape), to = run.open(out);
    if (type == ACL_COMPLEX64) return compute_complex<float>(gs, ys, to);
    if (type == ACL_COMPLEX128) return compute_complex<double>(gs, ys, to);
    if (type == ACL_DOUBLE) return write(to, compute(read_doubles(gs), read_doubles(ys)));
    std::vector<float> values = compute(read_floats(gs), read_floats(ys));
    for (float& v : values) v = round_to(type, v);  // the kernel's own result has the common type
    write(to, values);
  });
}
EMU_END(aclnnSigmoidBackward)
