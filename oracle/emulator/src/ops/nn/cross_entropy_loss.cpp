// aclnnCrossEntropyLoss and aclnnCrossEntropyLossGrad, of (N, C) and one class for each sample. Both interfaces are
// generated: they compare dtypes with the rows of the definition, and the tiling does the rest.
#include <limits>

#include "ops/nn/elementwise.h"

using namespace emu;

namespace {

constexpr int kTilingError = 561002;  // ACLNN_ERR_INNER_TILING_ERROR
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class... Args>
void tiling(bool fits, const char* format, Args... args) {
  if (!fits) throw Error{kTilingError, text(format, args...)};
}

int64_t dim(const Tensor& t, size_t k) { return k < t.rank() ? t.shape[k] : 0; }

struct Given {
  Tensor x, t, w;
  std::string reduction;
  int64_t ignore;
  float smoothing;

  bool is(const char* word) const { return reduction == word; }
};

void check_configured() {
  if (!soc().regbase && !soc().bfloat16)
    throw Error{ACLNN_ERR_INNER_FIND_KERNEL_ERROR, text("the definition has no kernel for %s", soc().soc)};
}

// The formats that a generated interface takes for ND.
void check_format(const Tensor& t) {
  constexpr aclFormat kRows[] = {ACL_FORMAT_ND, ACL_FORMAT_NCL, ACL_FORMAT_NCHW, ACL_FORMAT_NHWC, ACL_FORMAT_NCDHW};
  check(std::find(std::begin(kRows), std::end(kRows), t.format) != std::end(kRows), "%s has format %d", t.name,
        t.format);
}

// A row of the definition: one float type, classes of int64 (int32 too on ascend950), weights of float32. What is
// optional is looked at last.
void check_row(const Given& g, std::initializer_list<Tensor> others) {
  check_supported_float(g.x);
  for (const Tensor& t : others) check_same_type(t, g.x);
  check(g.t.type == ACL_INT64 || (soc().regbase && g.t.type == ACL_INT32), "target has dtype %s", type_name(g.t.type));
  check_format(g.x);
  check_format(g.t);
  for (const Tensor& t : others) check_format(t);
  if (g.w.present && g.w.type != ACL_FLOAT)
    throw Error{ACLNN_ERR_INNER_FIND_KERNEL_ERROR, text("weightOptional has dtype %s", type_name(g.w.type))};
}

void check_lengths(const Given& g) {
  tiling(dim(g.t, 0) == dim(g.x, 0), "target has shape %s, %s has %s", show(g.t.shape).c_str(), g.x.name,
         show(g.x.shape).c_str());
  tiling(!g.w.present || dim(g.w, 0) == dim(g.x, 1), "weightOptional has shape %s, %s has %s", show(g.w.shape).c_str(),
         g.x.name, show(g.x.shape).c_str());
  if (!soc().regbase) return;
  tiling(g.x.rank() == 2, "%s has rank %zu", g.x.name, g.x.rank());
  tiling(g.t.rank() == 1, "target has rank %zu", g.t.rank());
  tiling(dim(g.x, 0) == 0 || dim(g.x, 1) > 0, "%s has no classes", g.x.name);
}

void check_word(const Given& g) {
  tiling(g.is("mean") || g.is("sum") || g.is("none"), "reductionOptional is %s; it must be mean, sum or none",
         g.reduction.c_str());
}

void check_smoothing(const Given& g) {
  tiling(g.smoothing >= 0 && g.smoothing <= 1, "labelSmoothing is %g; it must be in [0, 1]",
         static_cast<double>(g.smoothing));
}

// The operands of a running kernel; absent weights are ones.
struct Samples {
  size_t count, classes;
  std::vector<double> x, w;
  std::vector<int64_t> t;

  Samples(Run& run, const Given& g)
      : count(static_cast<size_t>(g.x.shape[0])),
        classes(static_cast<size_t>(g.x.shape[1])),
        x(read_doubles(run.open(g.x))),
        w(g.w.present ? read_doubles(run.open(g.w)) : std::vector<double>(classes, 1.0)),
        t(read_integers(run.open(g.t))) {
    for (size_t n = 0; n < count; n++) {
      if (t[n] == g.ignore || (t[n] >= 0 && t[n] < static_cast<int64_t>(classes))) continue;
      throw Error{ACL_ERROR_RT_VECTOR_CORE_EXCEPTION, text("target[%zu] is %ld, outside the %zu classes", n,
                                                           static_cast<long>(t[n]), classes)};
    }
  }

  double weight_of(size_t n, int64_t ignore) const { return t[n] == ignore ? 0 : w[static_cast<size_t>(t[n])]; }

  double weight(int64_t ignore) const {
    double total = 0;
    for (size_t n = 0; n < count; n++) total += weight_of(n, ignore);
    return total;
  }
};

void run_loss(Run& run, const Given& g, const Tensor& loss, const Tensor& logProb) {
  Samples s(run, g);
  double smoothing = static_cast<double>(g.smoothing), sum = 0;
  std::vector<double> losses(s.count, 0.0);
  for (size_t n = 0; n < s.count; n++) {
    double *row = s.x.data() + n * s.classes, largest = *std::max_element(row, row + s.classes), exps = 0, all = 0;
    for (size_t c = 0; c < s.classes; c++) {
      row[c] = std::isnan(row[c]) || std::isinf(largest) ? kNaN : row[c] - largest;
      exps += std::exp(row[c]);
    }
    for (size_t c = 0; c < s.classes; c++) {
      row[c] -= std::log(exps);
      all -= row[c] * s.w[c];
    }
    if (s.t[n] == g.ignore) continue;
    size_t c = static_cast<size_t>(s.t[n]);
    losses[n] = -row[c] * s.w[c];
    if (g.smoothing != 0) losses[n] = (1 - smoothing) * losses[n] + smoothing / static_cast<double>(s.classes) * all;
    sum += losses[n];
  }
  write(run.open(logProb), s.x);
  if (!g.is("none")) losses = {g.is("mean") ? sum / s.weight(g.ignore) : sum};
  write(run.open(loss), losses);
}

void run_gradient(Run& run, const Given& g, const Tensor& gradLoss, const Tensor& out) {
  Samples s(run, g);
  std::vector<double> gradients = read_doubles(run.open(gradLoss));
  double smoothing = static_cast<double>(g.smoothing), classes = static_cast<double>(s.classes), weights = 0;
  for (double w : s.w) weights += w;
  double total = g.is("mean") ? s.weight(g.ignore) : 1;
  for (size_t n = 0; n < s.count; n++) {
    double gradient = gradients[g.is("none") ? n : 0], *row = s.x.data() + n * s.classes;
    double k = gradient * (1 - smoothing) / total * s.weight_of(n, g.ignore);
    double q = s.t[n] == g.ignore || g.smoothing == 0 ? 0 : gradient / total * smoothing / classes;
    for (size_t c = 0; c < s.classes; c++) {
      double at = static_cast<int64_t>(c) == s.t[n] ? k : 0;
      row[c] = std::exp(row[c]) * (g.smoothing == 0 ? k : k + q * weights) - at - (g.smoothing == 0 ? 0 : q * s.w[c]);
    }
  }
  write(run.open(out), s.x);
}

const char* word_or_mean(const char* reduction) { return reduction == nullptr ? "mean" : reduction; }

}  // namespace

EMU_FIRST_PHASE(aclnnCrossEntropyLoss, const aclTensor* input, const aclTensor* target, const aclTensor* weightOptional,
                char* reductionOptional, int64_t ignoreIndex, double labelSmoothing, double lseSquareScaleForZloss,
                bool returnZloss, const aclTensor* lossOut, const aclTensor* logProbOut, const aclTensor* zlossOut,
                const aclTensor* lseForZlossOut) {
  Tensor x = op.input("input", input), t = op.input("target", target), w = op.input("weightOptional", weightOptional);
  op.attribute("reductionOptional", static_cast<const char*>(reductionOptional));
  op.attribute("ignoreIndex", ignoreIndex);
  op.attribute("labelSmoothing", labelSmoothing);
  op.attribute("lseSquareScaleForZloss", lseSquareScaleForZloss);
  op.attribute("returnZloss", returnZloss);
  Tensor loss = op.output("lossOut", lossOut), logProb = op.output("logProbOut", logProbOut),
         zloss = op.output("zlossOut", zlossOut), lse = op.output("lseForZlossOut", lseForZlossOut);
  op.require_present({x, t, loss, logProb, zloss, lse});
  check_configured();
  Given g{x, t, w, word_or_mean(reductionOptional), ignoreIndex, static_cast<float>(labelSmoothing)};
  check_row(g, {loss, logProb, zloss, lse});
  if (loss.empty() && logProb.empty() && zloss.empty() && lse.empty()) return;
  check_word(g);
  check_smoothing(g);
  check_lengths(g);
  if (x.empty()) {
    if (!g.is("none")) queue_fill(op, loss, g.is("mean") ? kNaN : 0.0);
    return;
  }
  op.workspace({x, t});
  op.kernel([=](Run& run) { run_loss(run, g, loss, logProb); });
}
EMU_END(aclnnCrossEntropyLoss)

EMU_FIRST_PHASE(aclnnCrossEntropyLossGrad, const aclTensor* gradLoss, const aclTensor* logProb, const aclTensor* target,
                const aclTensor* weightOptional, const aclTensor* gradZlossOptional,
                const aclTensor* lseForZlossOptional, char* reductionOptional, int64_t ignoreIndex,
                double labelSmoothing, double lseSquareScaleForZloss, const aclTensor* out) {
  Tensor gradient = op.input("gradLoss", gradLoss), x = op.input("logProb", logProb), t = op.input("target", target),
         w = op.input("weightOptional", weightOptional);
  op.input("gradZlossOptional", gradZlossOptional);
  op.input("lseForZlossOptional", lseForZlossOptional);
  op.attribute("reductionOptional", static_cast<const char*>(reductionOptional));
  op.attribute("ignoreIndex", ignoreIndex);
  op.attribute("labelSmoothing", labelSmoothing);
  op.attribute("lseSquareScaleForZloss", lseSquareScaleForZloss);
  Tensor made = op.output("out", out);
  op.require_present({gradient, x, t, made});
  check_configured();
  Given g{x, t, w, word_or_mean(reductionOptional), ignoreIndex, static_cast<float>(labelSmoothing)};
  check_row(g, {gradient, made});
  if (made.empty()) return;
  check_word(g);
  check_lengths(g);
  if (soc().regbase) {
    bool fits = g.is("none") ? gradient.shape == t.shape : gradient.rank() <= 1 && gradient.count() == 1;
    tiling(fits, "gradLoss has shape %s", show(gradient.shape).c_str());
    check_smoothing(g);
  }
  op.workspace({x, t});
  op.kernel([=](Run& run) { run_gradient(run, g, gradient, made); });
}
EMU_END(aclnnCrossEntropyLossGrad)
