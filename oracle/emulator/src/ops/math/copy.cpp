// aclnnInplaceCopy (with broadcasting and conversion), aclnnCast and aclnnCat.
#include "ops/math/pointwise.h"

using namespace emu;

namespace {

void copy(Op& op, const Tensor& to, const Tensor& from) {
  op.require_present({to, from});
  check(broadcasts_to(from.shape, to.shape), "%s %s does not broadcast to %s %s", from.name, show(from.shape).c_str(),
        to.name, show(to.shape).c_str());
  if (to.empty()) return;
  op.workspace({from});
  op.kernel([=](Run& run) {
    View target = run.open(to), source = broadcast(run.open(from), to.shape);
    if (to.type == from.type)
      copy_bytes(target, source);
    else if (integral(from.type))
      write(target, read_integers(source));
    else
      write(target, read_doubles(source));
  });
}

// The parts fill `out` along `axis` and have its shape otherwise; an empty part of rank 1 counts for nothing.
void check_parts(const Op& op, const std::vector<Tensor>& parts, const Tensor& out, size_t axis) {
  int64_t sum = 0;
  for (const Tensor& part : parts) {
    op.require_present({part});
    if (part.rank() == 1 && part.empty()) continue;
    check(part.rank() == out.rank(), "a tensor has shape %s, out has %s: the ranks differ", show(part.shape).c_str(),
          show(out.shape).c_str());
    Dims wanted = out.shape;
    wanted[axis] = part.shape[axis];
    check_shape(part, wanted);
    sum += part.shape[axis];
  }
  check(!parts.empty(), "tensors is empty; at least one is needed");
  check(sum == out.shape[axis], "out has %ld elements along the axis, the tensors have %ld",
        static_cast<long>(out.shape[axis]), static_cast<long>(sum));
}

}  // namespace

EMU_FIRST_PHASE(aclnnInplaceCopy, aclTensor* selfRef, const aclTensor* src) {
  Tensor to = op.output("selfRef", selfRef), from = op.input("src", src);
  copy(op, to, from);
}
EMU_END(aclnnInplaceCopy)

EMU_FIRST_PHASE(aclnnCast, const aclTensor* self, aclDataType dtype, aclTensor* out_) {
  Tensor from = op.input("self", self), to = op.output("out", out_);
  op.require_present({from, to});
  check(to.type == dtype, "out has dtype %s, asked for is %s", type_name(to.type), type_name(dtype));
  check_same_shape(to, from);
  copy(op, to, from);
}
EMU_END(aclnnCast)

EMU_FIRST_PHASE(aclnnCat, const aclTensorList* list, int64_t dim, aclTensor* out_) {
  std::vector<Tensor> parts = op.inputs("tensors", list);
  Tensor out = op.output("out", out_);
  op.require_present({out});
  int64_t rank = static_cast<int64_t>(out.rank());
  check(dim >= -rank && dim < rank, "dim is %ld; it must be in [%ld, %ld]", static_cast<long>(dim),
        static_cast<long>(-rank), static_cast<long>(rank - 1));
  size_t axis = static_cast<size_t>(dim < 0 ? dim + rank : dim);
  check_parts(op, parts, out, axis);
  if (out.empty()) return;
  op.kernel([=](Run& run) {
    View whole = run.open(out);
    int64_t size = static_cast<int64_t>(aclDataTypeSize(out.type)), at = 0;
    for (const Tensor& part : parts) {
      if (part.empty()) continue;
      View target = whole;
      target.shape[axis] = part.shape[axis];
      target.first += at * whole.strides[axis] * size;
      at += part.shape[axis];
      if (part.type == out.type)
        copy_bytes(target, run.open(part));
      else
        write(target, read_doubles(run.open(part)));
    }
  });
}
EMU_END(aclnnCat)
