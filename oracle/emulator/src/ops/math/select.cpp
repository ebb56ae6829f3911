// aclnnMaskedSelect (its output shrinks to the number of true elements) and aclnnSWhere.
#include "ops/math/pointwise.h"

using namespace emu;

EMU_C aclnnStatus aclnnMaskedSelectGetWorkspaceSize(const aclTensor* self, const aclTensor* mask_, aclTensor* out_,
                                                    uint64_t* workspaceSize, aclOpExecutor** executor) {
  static FirstPhase phase("aclnnMaskedSelect");
  return phase(workspaceSize, executor, [&](Op& op) {
    Tensor x = op.input("self", self), mask = op.input("mask", mask_), out = op.output("out", out_);
    op.require_present({x, mask, out});
    Dims shape = broadcast_shape(x, mask);
    check(out.rank() == 1 && out.count() >= count_of(shape), "out has shape %s; it must hold %ld elements",
          show(out.shape).c_str(), static_cast<long>(count_of(shape)));
    if (count_of(shape) == 0) return;
    auto handle = tensors().find(out_);
    op.kernel([=](Run& run) {
      std::vector<double> xs = read_doubles(broadcast(run.open(x), shape));
      std::vector<int64_t> chosen = read_integers(broadcast(run.open(mask), shape));
      size_t n = 0;
      for (size_t i = 0; i < xs.size(); i++) {
        if (chosen[i] != 0) xs[n++] = xs[i];
      }
      xs.resize(n);
      View target = run.open(out);
      target.shape = {static_cast<int64_t>(n)};
      write(target, xs);
      handle->shape = target.shape;  // aclGetViewShape after the synchronisation answers the real size
    });
  });
}
EMU_SECOND_PHASE(aclnnMaskedSelect)

EMU_C aclnnStatus aclnnSWhereGetWorkspaceSize(const aclTensor* condition, const aclTensor* self, const aclTensor* other,
                                              aclTensor* out_, uint64_t* workspaceSize, aclOpExecutor** executor) {
  static FirstPhase phase("aclnnSWhere");
  return phase(workspaceSize, executor, [&](Op& op) {
    Tensor c = op.input("condition", condition), x = op.input("self", self), y = op.input("other", other),
           out = op.output("out", out_);
    op.require_present({c, x, y, out});
    for (const Tensor* t : {&c, &x, &y})
      check(broadcasts_to(t->shape, out.shape), "%s %s does not broadcast to out %s", t->name, show(t->shape).c_str(),
            show(out.shape).c_str());
    if (out.empty()) return;
    op.kernel([=](Run& run) {
      std::vector<int64_t> cs = read_integers(broadcast(run.open(c), out.shape));
      std::vector<double> xs = read_doubles(broadcast(run.open(x), out.shape)),
                          ys = read_doubles(broadcast(run.open(y), out.shape));
      for (size_t i = 0; i < xs.size(); i++) xs[i] = cs[i] != 0 ? xs[i] : ys[i];
      write(run.open(out), xs);
    });
  });
}
EMU_SECOND_PHASE(aclnnSWhere)
