// aclnnSoftmax: exp(self - max) / sum(exp(self - max)) over dim. aclnnLogSoftmax: its logarithm.
#include "aclnnop/aclnn_softmax.h"

#include "ops/nn/elementwise.h"
#include "ops/nn/softmax_rows.h"

using namespace emu;

namespace {

// Sums in float64; everything else in the type of the computation. Softmax rounds to self's type before the cast to
// out's; LogSoftmax gets self cast to out's type.
template <class Real>
void softmax_of(const View& from, const View& to, const Rows& rows, bool logarithm, aclDataType self, aclDataType out) {
  std::vector<Real> xs = read_like(from, Real());
  if constexpr (std::is_same_v<Real, float>)
    for (Real& x : xs) x = logarithm && self != out ? round_to(out, x) : x;
  rows.each([&](size_t start, size_t step) {
    size_t end = start + static_cast<size_t>(rows.length) * step;
    Real largest = xs[start];
    for (size_t at = start; at < end; at += step) largest = std::max(largest, xs[at]);
    double sum = 0;
    for (size_t at = start; at < end; at += step) sum += std::exp(static_cast<double>(xs[at] - largest));
    Real log_sum = static_cast<Real>(std::log(sum));
    for (size_t at = start; at < end; at += step) {
      Real shifted = xs[at] - largest;
      xs[at] = logarithm ? shifted - log_sum : static_cast<Real>(std::exp(static_cast<double>(shifted)) / sum);
    }
  });
  if constexpr (std::is_same_v<Real, float>)
    for (Real& x : xs) x = logarithm ? x : round_to(self, x);
  write(to, xs);
}

void softmax(Op& op, const Tensor& x, const Tensor& out, int64_t dim, bool logarithm) {
  Rows rows(x.shape, dim);
  op.workspace({x, out});
  op.kernel([=](Run& run) {
    bool wide = (logarithm ? out.type : x.type) == ACL_DOUBLE;
    auto with = wide ? softmax_of<double> : softmax_of<float>;
    with(run.open(x), run.open(out), rows, logarithm, x.type, out.type);
  });
}

}  // namespace

EMU_FIRST_PHASE(aclnnSoftmax, const aclTensor* self, int64_t dim, aclTensor* out) {
  Tensor x = op.input("self", self);
  op.attribute("dim", dim);
  Tensor y = op.output("out", out);
  op.require_present({x, y});
  if (x.empty()) return;  // before every other check (ops-nn, aclnn_softmax.cpp)
  for (const Tensor* t : {&x, &y}) check_supported_float_or_double(*t);
  check_dim(dim, x.rank());
  check_rank(x, 8);
  check_same_shape(y, x);
  softmax(op, x, y, dim, false);
}
EMU_END(aclnnSoftmax)

EMU_FIRST_PHASE(aclnnLogSoftmax, const aclTensor* self, int64_t dim, aclTensor* out) {
  Tensor x = op.input("self", self);
  op.attribute("dim", dim);
  Tensor y = op.output("out", out);
  op.require_present({x, y});
  check_dim(dim, x.rank());
  for (const Tensor* t : {&x, &y}) check_supported_float_or_double(*t);
  check_rank(x, 8);
  check_rank(y, 8);
  check_same_shape(y, x);
  if (x.empty()) return;
  softmax(op, x, y, dim, true);
}
EMU_END(aclnnLogSoftmax)
