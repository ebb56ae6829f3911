// aclnnNLLLossBackward: out[n, target[n]] = -gradOutput * weight[target[n]], / totalWeight for mean; 0 everywhere else.
#include "aclnnop/aclnn_nll_loss_backward.h"

#include "ops/checks.h"

using namespace emu;

namespace {

struct Problem {
  int64_t rows, classes, reduction, ignore;
  aclDataType type;  // of the kernel's result
};

// ascend950: per row, an ignored target first; a target that is no class writes out of bounds.
void nll_950(const Problem& p, const std::vector<float>& g, const std::vector<int64_t>& target,
              const std::vector<float>& w, float total, std::vector<float>& out) {
  float scale = g[0] / total;
  for (int64_t n = 0; n < p.rows; n++) {
    int64_t c = target[static_cast<size_t>(n)];
    if (c == p.ignore) continue;
    if (c < 0 || c >= p.classes) {
      throw Error{ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
                  text("target[%ld] is %ld, outside the %ld classes: the kernel writes out of bounds",
                       static_cast<long>(n), static_cast<long>(c), static_cast<long>(p.classes))};
    }
    float factor = p.reduction == kMean ? scale : g[g.size() == 1 ? 0 : static_cast<size_t>(n)];
    out[static_cast<size_t>(n * p.classes + c)] = -round_to(p.type, factor * w[static_cast<size_t>(c)]);
  }
}

// The older parts: the weights are scaled and negated first; a target that is no class leaves a row of zeros.
void nll_tbe(const Problem& p, const std::vector<float>& g, const std::vector<int64_t>& target,
              const std::vector<float>& w, float total, std::vector<float>& out) {
  for (int64_t n = 0; n < p.rows; n++) {
    // Targets are cast to int32 first. What is too large is no class, however the cast behaves.
    int64_t c = target[static_cast<size_t>(n)];
    if (c < 0 || c >= p.classes || c == p.ignore) continue;
    float gradient = g[g.size() == 1 ? 0 : static_cast<size_t>(n)];
    float scale = p.reduction == kMean ? gradient / total : gradient;
    out[static_cast<size_t>(n * p.classes + c)] = round_to(p.type, w[static_cast<size_t>(c)] * scale * -1.0f);
  }
}

// A dim of a shape as the host code reads it: unused slots are 0.
int64_t dim_or_zero(const Tensor& t, size_t i) { return i < t.rank() ? t.shape[i] : 0; }

void check_types(const Tensor& g, const Tensor& x, const Tensor& t, const Tensor& w, const Tensor& total,
                 const Tensor& out) {
  for (const Tensor* other : {&w, &g, &total}) check_same_type(*other, x);
  check_can_cast("self", x.type, out);
  check_supported_float(x);
  check_type_in(t, {ACL_INT64, ACL_INT32, ACL_UINT8});
}

void check_shapes(const Tensor& g, const Tensor& x, const Tensor& t, const Tensor& w, const Tensor& total,
                  const Tensor& out, int64_t reduction) {
  check(x.rank() == 1 || x.rank() == 2, "self has rank %zu; it must be (N, C) or (C)", x.rank());
  check_rank(t, 1);
  check((x.rank() == 1 && t.rank() == 0) || dim_or_zero(x, 0) == dim_or_zero(t, 0), "target has shape %s, self has %s",
        show(t.shape).c_str(), show(x.shape).c_str());
  check(w.rank() == 1 && w.shape[0] == x.shape.back(), "weight has shape %s; it must be (%ld)", show(w.shape).c_str(),
        static_cast<long>(x.shape.back()));
  check(total.count() == 1, "totalWeight has shape %s; it must have one element", show(total.shape).c_str());
  if (reduction == kNone && x.rank() == 2) {
    check(g.rank() == 1 && g.shape[0] == x.shape[0], "gradOutput has shape %s; without reduction it must be (%ld)",
          show(g.shape).c_str(), static_cast<long>(x.shape[0]));
  } else {
    check(g.rank() <= 1 && g.count() == 1, "gradOutput has shape %s; it must have one element and rank 1 at most",
          show(g.shape).c_str());
  }
  check_same_shape(out, x);
}

}  // namespace

EMU_FIRST_PHASE(aclnnNLLLossBackward, const aclTensor* gradOutput, const aclTensor* self, const aclTensor* target,
                const aclTensor* weight, int64_t reduction, int64_t ignoreIndex, const aclTensor* totalWeight,
                aclTensor* out_) {
  Tensor g = op.input("gradOutput", gradOutput), x = op.input("self", self), t = op.input("target", target),
         w = op.input("weight", weight);
  op.attribute("reduction", reduction);
  op.attribute("ignoreIndex", ignoreIndex);
  Tensor total = op.input("totalWeight", totalWeight), out = op.output("out", out_);
  op.require_present({g, x, t, w, total, out});  // in the order of ops-nn's aclnn_nll_loss_backward.cpp
  check_types(g, x, t, w, total, out);
  check_reduction(reduction);
  check_shapes(g, x, t, w, total, out, reduction);
  if (x.empty()) return;

  bool regbase = soc().regbase;
  // Before ascend950 the host promotes float16 to float32, so only out rounds.
  aclDataType type = !regbase && x.type == ACL_FLOAT16 ? ACL_FLOAT : x.type;
  Problem p{x.rank() == 1 ? 1 : x.shape[0], x.shape.back(), reduction, ignoreIndex, type};
  op.workspace({g, x, t, w, total, out},
               regbase ? 0 : static_cast<size_t>(w.count()) * sizeof(float));  // the scaled weights
  op.kernel([=](Run& run) {
    std::vector<float> gs = read_floats(run.open(g)), ws = read_floats(run.open(w)),
                       totals = read_floats(run.open(total));
    std::vector<float> result(static_cast<size_t>(x.count()), 0.0f);
    auto form = regbase ? nll_950 : nll_tbe;
    form(p, gs, read_integers(run.open(t)), ws, totals[0], result);
    run.open(x);  // never read, but it must be there
    write(run.open(out), result);
  });
}
EMU_END(aclnnNLLLossBackward)
