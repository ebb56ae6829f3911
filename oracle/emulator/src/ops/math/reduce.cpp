// aclnnReduceSum, aclnnMean, aclnnMax, aclnnMin, aclnnAll, aclnnAny.
#include "ops/math/pointwise.h"

using namespace emu;

namespace {

// Which dims are reduced, and where each element's result lies.
struct Reduction {
  std::vector<bool> reduced;
  Dims out;

  Reduction(const Tensor& self, const Dims& dims, bool keep) : reduced(self.rank(), dims.empty()) {
    int64_t rank = static_cast<int64_t>(self.rank());
    for (int64_t dim : dims) {
      check_dim(dim, self.rank());
      if (rank > 0) reduced[static_cast<size_t>(dim < 0 ? dim + rank : dim)] = true;
    }
    for (size_t i = 0; i < self.rank(); i++) {
      if (!reduced[i])
        out.push_back(self.shape[i]);
      else if (keep)
        out.push_back(1);
    }
  }

  // The terms of every result, in row-major order of the results.
  template <class T, class Combine>
  std::vector<T> run(const std::vector<T>& values, const Dims& shape, T start, Combine combine) const {
    std::vector<T> results(static_cast<size_t>(count_of(out)), start);
    Dims index(shape.size(), 0);
    for (const T& value : values) {
      size_t at = 0;
      for (size_t i = 0; i < shape.size(); i++) {
        if (!reduced[i]) at = at * static_cast<size_t>(shape[i]) + static_cast<size_t>(index[i]);
      }
      results[at] = combine(results[at], value);
      for (size_t d = shape.size(); d-- > 0;) {
        if (++index[d] < shape[d]) break;
        index[d] = 0;
      }
    }
    return results;
  }
};

template <class Combine>
void reduce(Op& op, const Tensor& self, const Tensor& out, const Dims& dims, bool keep, double start,
            double divisor_per_term, Combine combine) {
  op.require_present({self, out});
  Reduction r(self, dims, keep);
  check_shape(out, r.out);
  if (out.empty()) return;
  double terms = static_cast<double>(self.count()) / static_cast<double>(out.count());
  double divisor = divisor_per_term == 0 ? 1 : terms;
  op.workspace({self});
  op.kernel([=](Run& run) {
    std::vector<double> results = r.run<double>(read_doubles(run.open(self)), self.shape, start, combine);
    for (double& x : results) x /= divisor;
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
  reduce(op, x, op.output("out", out), over, keepDims, 0, 0, sum);
}
EMU_END(aclnnReduceSum)

EMU_FIRST_PHASE(aclnnMean, const aclTensor* self, const aclIntArray* dim, bool keepDim, aclDataType, aclTensor* out) {
  Tensor x = op.input("self", self);
  Dims over = op.array("dim", dim);
  reduce(op, x, op.output("out", out), over, keepDim, 0, 1, sum);
}
EMU_END(aclnnMean)

#define EMU_WHOLE(name, start, combine)                                 \
  EMU_FIRST_PHASE(aclnn##name, const aclTensor* self, aclTensor* out) { \
    Tensor x = op.input("self", self);                                  \
    reduce(op, x, op.output("out", out), {}, false, start, 0, combine); \
  }                                                                     \
  EMU_END(aclnn##name)

EMU_WHOLE(Max, -HUGE_VAL, larger)
EMU_WHOLE(Min, HUGE_VAL, smaller)

#define EMU_TRUTH(name, start, symbol)                                                                        \
  EMU_FIRST_PHASE(aclnn##name, const aclTensor* self, const aclIntArray* dim, bool keepdim, aclTensor* out) { \
    Tensor x = op.input("self", self);                                                                        \
    Dims over = op.array("dim", dim);                                                                         \
    reduce(op, x, op.output("out", out), over, keepdim, start, 0,                                             \
           [](double a, double b) -> double { return a != 0 symbol b != 0; });                                \
  }                                                                                                           \
  EMU_END(aclnn##name)

EMU_TRUTH(All, 1, &&)
EMU_TRUTH(Any, 0, ||)
