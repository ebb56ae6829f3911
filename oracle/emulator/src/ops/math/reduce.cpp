// aclnnReduceSum, aclnnMean, aclnnMax, aclnnMin, aclnnAll, aclnnAny.
#include "ops/math/pointwise.h"
#include "ops/parts.h"
#include "ops/reduced.h"

using namespace emu;

namespace {

template <class Combine>
void reduce(Op& op, const Tensor& self, const Tensor& out, const Dims& dims, bool keep, double start, bool mean,
            Combine combine) {
  op.require_present({self, out});
  Mask over(self.rank(), dims.empty());
  for (int64_t dim : dims) {
    check_dim(dim, self.rank());
    if (self.rank() > 0) over[from_front(dim, self.shape)] = true;
  }
  Dims shape;
  for (size_t i = 0; i < self.rank(); i++) {
    if (keep || !over[i]) shape.push_back(over[i] ? 1 : self.shape[i]);
  }
  check_shape(out, shape);
  if (out.empty()) return;
  op.workspace({self});
  op.kernel([=](Run& run) {
    Reduced rows(self.shape, over);
    std::vector<double> xs = read_doubles(run.open(self)), results(rows.count(), start);
    for (size_t i = 0; i < xs.size(); i++) results[rows.row[i]] = combine(results[rows.row[i]], xs[i]);
    for (double& x : results) x /= mean ? static_cast<double>(rows.length) : 1;
    write(run.open(out), results);
  });
}

double sum(double a, double b) { return a + b; }
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

}  // namespace

EMU_FIRST_PHASE(aclnnReduceSum, const aclTensor* self, const aclIntArray* dims, bool keepDims, aclDataType,
                aclTensor* out) {
  Tensor x = op.input("self", self);
  Dims over = op.array("dims", dims);
  reduce(op, x, op.output("out", out), over, keepDims, 0, false, sum);
}
EMU_END(aclnnReduceSum)

EMU_FIRST_PHASE(aclnnMean, const aclTensor* self, const aclIntArray* dim, bool keepDim, aclDataType, aclTensor* out) {
  Tensor x = op.input("self", self);
  Dims over = op.array("dim", dim);
  reduce(op, x, op.output("out", out), over, keepDim, 0, true, sum);
}
EMU_END(aclnnMean)

#define EMU_WHOLE(name, start, combine)                                 \
  EMU_FIRST_PHASE(aclnn##name, const aclTensor* self, aclTensor* out) { \
    Tensor x = op.input("self", self);                                  \
    reduce(op, x, op.output("out", out), {}, false, start, false, combine); \
  }                                                                     \
  EMU_END(aclnn##name)

EMU_WHOLE(Max, -HUGE_VAL, larger)
EMU_WHOLE(Min, HUGE_VAL, smaller)

#define EMU_TRUTH(name, start, symbol)                                                                        \
  EMU_FIRST_PHASE(aclnn##name, const aclTensor* self, const aclIntArray* dim, bool keepdim, aclTensor* out) { \
    Tensor x = op.input("self", self);                                                                        \
    Dims over = op.array("dim", dim);                                                                         \
    reduce(op, x, op.output("out", out), over, keepdim, start, false,                                             \
           [](double a, double b) -> double { return a != 0 symbol b != 0; });                                \
  }                                                                                                           \
  EMU_END(aclnn##name)

EMU_TRUTH(All, 1, &&)
EMU_TRUTH(Any, 0, ||)
