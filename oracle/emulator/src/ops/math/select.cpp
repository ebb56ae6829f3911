// aclnnMaskedSelect (its output shrinks to the number of true elements), aclnnSWhere and aclnnGather.
#include "ops/math/pointwise.h"

using namespace emu;

EMU_FIRST_PHASE(aclnnMaskedSelect, const aclTensor* self, const aclTensor* mask_, aclTensor* out_) {
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
}
EMU_END(aclnnMaskedSelect)

EMU_FIRST_PHASE(aclnnSWhere, const aclTensor* condition, const aclTensor* self, const aclTensor* other,
                aclTensor* out_) {
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
}
EMU_END(aclnnSWhere)

EMU_FIRST_PHASE(aclnnGather, const aclTensor* self, int64_t dim, const aclTensor* index_, aclTensor* out_) {
  Tensor x = op.input("self", self), index = op.input("index", index_), out = op.output("out", out_);
  int64_t rank = static_cast<int64_t>(x.rank()), axis = op.attribute("dim", dim);
  op.require_present({x, index, out});
  check(rank > 0 && index.rank() == x.rank() && axis >= -rank && axis < rank,
        "dim %ld, self %s, index %s: both must have the same rank, and an axis of that number",
        static_cast<long>(axis), show(x.shape).c_str(), show(index.shape).c_str());
  check_shape(out, index.shape);
  if (out.empty()) return;
  size_t along = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  op.kernel([=](Run& run) {
    std::vector<double> xs = read_doubles(run.open(x)), values;
    Dims place(x.rank(), 0);
    for (int64_t at : read_integers(run.open(index))) {
      if (at < 0 || at >= x.shape[along]) throw Error{ACL_ERROR_RT_VECTOR_CORE_EXCEPTION, "an index is outside self"};
      int64_t k = 0;
      for (size_t i = 0; i < x.rank(); i++) k = k * x.shape[i] + (i == along ? at : place[i]);
      values.push_back(xs[static_cast<size_t>(k)]);
      for (size_t i = x.rank(); i-- > 0 && ++place[i] == index.shape[i];) place[i] = 0;
    }
    write(run.open(out), values);
  });
}
EMU_END(aclnnGather)
