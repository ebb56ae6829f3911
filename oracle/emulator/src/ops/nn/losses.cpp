// The losses whose gradients the suite has, of elements that broadcast: MSE, L1, smooth L1, KL divergence, soft margin,
// binary cross entropy with logits. Of each what the host code accepts (ops-nn, aclnn_*.cpp) and the formula; terms and
// sums in float64, rounded to the kernel's type and then to out's.
#include <numeric>

#include "ops/nn/elementwise.h"

using namespace emu;

namespace {

// A call of these losses: its inputs are cast to `type` and broadcast to `shape`, an absent one is 1; the kernel stores
// `stored`.
struct Loss {
  aclDataType type;
  Dims shape;
  int64_t reduction;
  Tensor out;
  aclDataType stored = type;
  bool along_axis_0 = false;

  double divisor() const {
    if (reduction == kMean) return static_cast<double>(count_of(shape));
    return reduction == kBatchMean && !shape.empty() ? static_cast<double>(shape[0]) : 1;
  }

  std::vector<double> reduced(const std::vector<double>& terms) const {
    return {std::accumulate(terms.begin(), terms.end(), 0.0) / divisor()};
  }

  // The terms are those of no reduction, and so rounded to the type before they are added.
  std::vector<double> reduced_along_axis_0(const std::vector<double>& terms) const {
    size_t rows = shape.empty() ? 1 : static_cast<size_t>(shape[0]), row = terms.size() / rows;
    std::vector<double> sums(row, 0.0);
    for (size_t i = 0; i < terms.size(); i++) sums[i % row] += round_to(type, terms[i]);
    for (double& sum : sums) sum /= reduction == kMean ? static_cast<double>(rows) : 1;
    return sums;
  }
};

template <size_t N, class F>
void queue(Op& op, const Loss& loss, const Tensor (&given)[N], F term) {
  std::array<Tensor, N> inputs;
  std::copy(std::begin(given), std::end(given), inputs.begin());
  size_t present = 0;
  for (const Tensor& input : inputs) present += input.present;
  op.workspace({loss.out}, present * static_cast<size_t>(count_of(loss.shape)) * sizeof(float));
  op.kernel([=](Run& run) {
    std::array<std::vector<double>, N> columns;
    for (size_t k = 0; k < N; k++) columns[k] = read_cast<double>(run, inputs[k], loss.shape, loss.type);
    std::vector<double>& terms = columns[0];
    for (size_t i = 0; i < terms.size(); i++) {
      std::array<double, N> values;
      for (size_t k = 0; k < N; k++) values[k] = columns[k][i];
      terms[i] = term(values);
    }
    if (loss.reduction != kNone && !loss.along_axis_0 && loss.out.count() != 1)  // no check looked at the shape
      throw Error{ACL_ERROR_RT_AICORE_EXCEPTION, "no copy is made of one element to out's shape " + show(loss.out.shape)};
    if (loss.reduction != kNone) terms = loss.along_axis_0 ? loss.reduced_along_axis_0(terms) : loss.reduced(terms);
    if (is_float(loss.stored)) {
      for (double& v : terms) v = round_to(loss.stored, v);
    }
    write(run.open(loss.out), terms);
  });
}

// |x - t| of integers, and their sum, which wrap.
void queue_distances(Op& op, const Loss& loss, const Tensor& x, const Tensor& t) {
  op.workspace({loss.out}, 2 * static_cast<size_t>(count_of(loss.shape)) * sizeof(int64_t));
  op.kernel([=](Run& run) {
    auto xs = read_integers(broadcast(run.open(x), loss.shape)), ts = read_integers(broadcast(run.open(t), loss.shape));
    uint64_t sum = 0;
    for (size_t i = 0; i < xs.size(); i++) {
      uint64_t distance = static_cast<uint64_t>(xs[i]) - static_cast<uint64_t>(ts[i]);
      if (static_cast<int64_t>(distance) < 0) distance = 0 - distance;
      xs[i] = static_cast<int64_t>(distance);
      sum += distance;
    }
    if (loss.reduction != kNone) xs = {static_cast<int64_t>(sum)};
    write(run.open(loss.out), xs);
  });
}

using Pair = std::array<double, 2>;  // self, target

bool is_integral(const Tensor& t) { return is_integer(t.type) || t.type == ACL_BOOL; }

void check_scalar(const Tensor& out) {
  check(out.rank() == 0, "out has shape %s; a mean and a sum have none", show(out.shape).c_str());
}

// Whether the call has no elements; then it is answered.
bool is_empty(Op& op, const Tensor& x, const Tensor& t, int64_t reduction, const Tensor& out) {
  if (!any_empty({x, t})) return false;
  if (reduction == kMean || reduction == kSum)  // NaN is the mean of none
    queue_fill(op, out, reduction == kMean ? std::numeric_limits<double>::quiet_NaN() : 0.0);
  return true;
}

void mse(Op& op, const aclTensor* self, const aclTensor* target, int64_t reduction, aclTensor* output,
         bool along_axis_0) {
  Tensor x = op.input("self", self), t = op.input("target", target);
  op.attribute("reduction", reduction);
  Tensor out = op.output("out", output);
  op.require_present({x, t, out});
  check_supported_floats({x, t, out});
  check_reduction(reduction);
  check_ranks({x, t});
  Loss loss{promoted(x, t), broadcast_shape(x, t), reduction, out};
  loss.along_axis_0 = along_axis_0;
  Dims made = loss.shape;
  if (reduction != kNone && along_axis_0 && !made.empty()) made.erase(made.begin());
  reduction == kNone || along_axis_0 ? check_shape(out, made) : check_scalar(out);
  if (along_axis_0 ? any_empty({x, t}) : is_empty(op, x, t, reduction, out)) return;  // the first writes nothing
  queue(op, loss, {x, t}, [](Pair v) { return (v[0] - v[1]) * (v[0] - v[1]); });
}

}  // namespace

EMU_FIRST_PHASE(aclnnMseLoss, const aclTensor* self, const aclTensor* target, int64_t reduction, aclTensor* output) {
  mse(op, self, target, reduction, output, false);
}
EMU_END(aclnnMseLoss)

EMU_FIRST_PHASE(aclnnMseLossOut, const aclTensor* self, const aclTensor* target, int64_t reduction, aclTensor* output) {
  mse(op, self, target, reduction, output, true);
}
EMU_END(aclnnMseLossOut)

EMU_FIRST_PHASE(aclnnL1Loss, const aclTensor* self, const aclTensor* target, int64_t reduction, aclTensor* output) {
  Tensor x = op.input("self", self), t = op.input("target", target);
  op.attribute("reduction", reduction);
  Tensor out = op.output("out", output);
  op.require_present({x, t, out});
  check_reduction(reduction);
  bool integral[] = {is_integral(x), is_integral(t)};
  check(reduction != kNone || !integral[0] || integral[1], "target has dtype %s, self has %s", type_name(t.type),
        type_name(x.type));
  check(reduction != kMean || !integral[0] || !integral[1], "the mean of %s and %s is no integer", type_name(x.type),
        type_name(t.type));
  Loss loss{promoted(x, t), broadcast_shape(x, t), reduction, out};
  if (loss.type != ACL_INT64) check_promoted_float({x, t});
  check_can_cast("the common dtype of self and target", loss.type, out);
  check_ranks({x, t});
  reduction == kNone ? check_shape(out, loss.shape) : check_scalar(out);
  if (is_empty(op, x, t, reduction, out)) return;
  if (loss.type == ACL_INT64) return queue_distances(op, loss, x, t);
  queue(op, loss, {x, t}, [](Pair v) { return std::fabs(v[0] - v[1]); });
}
EMU_END(aclnnL1Loss)

EMU_FIRST_PHASE(aclnnSmoothL1Loss, const aclTensor* self, const aclTensor* target, int64_t reduction, float beta,
                aclTensor* result) {
  Tensor x = op.input("self", self), t = op.input("target", target);
  op.attribute("reduction", reduction);
  op.attribute("beta", static_cast<double>(beta));
  Tensor out = op.output("result", result);
  op.require_present({x, t, out});
  check_supported_floats({x, t});
  Loss loss{promoted(x, t), broadcast_shape(x, t), reduction, out};
  check_can_cast("the common dtype of self and target", loss.type, out);
  check_reduction(reduction);
  check_ranks({x, t});
  if (reduction == kNone) check_shape(out, loss.shape);
  check(beta >= 0, "beta is %g; it must be at least 0", static_cast<double>(beta));
  if (is_empty(op, x, t, reduction, out)) return;
  queue(op, loss, {x, t}, [b = static_cast<double>(beta)](Pair v) {
    double d = std::fabs(v[0] - v[1]);
    return d < b ? d * d / b / 2 : d - b / 2;
  });
}
EMU_END(aclnnSmoothL1Loss)

EMU_FIRST_PHASE(aclnnSoftMarginLoss, const aclTensor* self, const aclTensor* target, int64_t reduction,
                aclTensor* output) {
  Tensor x = op.input("self", self), t = op.input("target", target);
  op.attribute("reduction", reduction);
  Tensor out = op.output("out", output);
  op.require_present({x, t, out});
  check_supported_floats({x, t, out});
  check_ranks({x, t});
  int64_t known = reduction == kNone || reduction == kMean ? reduction : kSum;  // any other number is a sum
  Loss loss{promoted(x, t), broadcast_shape(x, t), known, out};
  known == kNone ? check_shape(out, loss.shape) : check_scalar(out);
  if (is_empty(op, x, t, reduction, out)) return;
  queue(op, loss, {x, t}, [](Pair v) {
    double z = -v[0] * v[1];
    return std::log1p(std::exp(-std::fabs(z))) + (z <= 0 ? 0 : z);
  });
}
EMU_END(aclnnSoftMarginLoss)

EMU_FIRST_PHASE(aclnnKlDiv, const aclTensor* self, const aclTensor* target, int64_t reduction, bool logTarget,
                aclTensor* output) {
  Tensor x = op.input("self", self), t = op.input("target", target);
  op.attribute("reduction", reduction);
  op.attribute("logTarget", logTarget);
  Tensor out = op.output("out", output);
  op.require_present({x, t, out});
  check_supported_floats({x, t, out});
  check_ranks({x, t});
  check(reduction >= kNone && reduction <= kBatchMean, "reduction is %ld; it must be in [0, 3]",
        static_cast<long>(reduction));
  if (reduction == kBatchMean && any_empty({x, t})) {
    bool none = x.rank() > 0 && x.shape[0] == 0;
    return queue_fill(op, out, none ? std::numeric_limits<double>::quiet_NaN() : 0.0);
  }
  if (is_empty(op, x, t, reduction, out)) return;
  Loss loss{promoted(x, t), broadcast_shape(x, t), reduction, out};
  Dims made = reduction != kNone ? Dims{} : loss.shape;
  if (reduction == kNone || out.count() != 1 || count_of(made) != 1) check_shape(out, made);
  queue(op, loss, {x, t}, [logTarget](Pair v) {
    if (logTarget) return std::exp(v[1]) * (v[1] - v[0]);
    return (v[1] == 0 ? 0 : v[1] * std::log(v[1])) - v[1] * v[0];
  });
}
EMU_END(aclnnKlDiv)

EMU_FIRST_PHASE(aclnnBinaryCrossEntropyWithLogits, const aclTensor* self, const aclTensor* target,
                const aclTensor* weightOptional, const aclTensor* posWeightOptional, int64_t reduction,
                aclTensor* output) {
  Tensor x = op.input("self", self), t = op.input("target", target), w = op.input("weightOptional", weightOptional),
         p = op.input("posWeightOptional", posWeightOptional);
  op.attribute("reduction", reduction);
  Tensor out = op.output("out", output);
  op.require_present({x, t, out});
  check_supported_floats({x, t, out});
  check_same_type(out, t);
  check_reduction(reduction);
  check_ranks({x, t, w, p});
  check_same_shape(x, t);
  broadcast_shape(t, w.empty() ? t : w, p.empty() ? t : p);  // an absent weight has no dims
  if (is_empty(op, x, t, reduction, out)) return;
  if (reduction == kNone) check_shape(out, broadcast_shape(x, w, p));
  if (any_empty({w, p})) return;  // nobody knows what the kernel makes of it
  Loss loss{promoted(x, t), broadcast_shape(x, w, p), reduction, out, ACL_FLOAT};
  queue(op, loss, {x, t, w, p}, [](std::array<double, 4> values) {
    auto [x, t, w, p] = values;
    double softplus = std::log1p(std::exp(-std::fabs(x))) + (x >= 0 ? 0 : -x);  // of -x
    return w * ((1 - t) * x + (1 + (p - 1) * t) * softplus);
  });
}
EMU_END(aclnnBinaryCrossEntropyWithLogits)
