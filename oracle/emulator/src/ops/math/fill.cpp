// aclnnInplaceOne, aclnnInplaceZero, aclnnInplaceFillScalar, aclnnInplaceFillTensor, aclnnInplaceMaskedFillScalar.
#include "ops/math/pointwise.h"

using namespace emu;

namespace {

void fill(Op& op, const Tensor& self, double value, int64_t whole) {
  op.require_present({self});
  if (self.empty()) return;
  op.kernel([=](Run& run) {
    size_t n = static_cast<size_t>(self.count());
    if (integral(self.type))
      write(run.open(self), std::vector<int64_t>(n, whole));
    else
      write(run.open(self), std::vector<double>(n, value));
  });
}

}  // namespace

EMU_FIRST_PHASE(aclnnInplaceOne, aclTensor* selfRef) {
  fill(op, op.output("selfRef", selfRef), 1, 1);
}
EMU_END(aclnnInplaceOne)

EMU_FIRST_PHASE(aclnnInplaceZero, aclTensor* selfRef) {
  fill(op, op.output("selfRef", selfRef), 0, 0);
}
EMU_END(aclnnInplaceZero)

EMU_FIRST_PHASE(aclnnInplaceFillScalar, aclTensor* selfRef, const aclScalar* value) {
  auto scalar = op.scalar("value", value);
  fill(op, op.output("selfRef", selfRef), scalar->real, scalar->integer);
}
EMU_END(aclnnInplaceFillScalar)

EMU_FIRST_PHASE(aclnnInplaceFillTensor, aclTensor* selfRef, const aclTensor* value_) {
  Tensor self = op.output("selfRef", selfRef), value = op.input("value", value_);
  op.require_present({self, value});
  check(value.count() == 1, "value has shape %s; it must have one element", show(value.shape).c_str());
  if (self.empty()) return;
  op.kernel([=](Run& run) {
    write(run.open(self), std::vector<double>(static_cast<size_t>(self.count()), read_doubles(run.open(value))[0]));
  });
}
EMU_END(aclnnInplaceFillTensor)

EMU_FIRST_PHASE(aclnnInplaceMaskedFillScalar, aclTensor* selfRef, const aclTensor* mask_, const aclScalar* value) {
  auto scalar = op.scalar("value", value);
  Tensor self = op.output("selfRef", selfRef), mask = op.input("mask", mask_);
  op.require_present({self, mask});
  check(broadcasts_to(mask.shape, self.shape), "mask %s does not broadcast to selfRef %s", show(mask.shape).c_str(),
        show(self.shape).c_str());
  if (self.empty()) return;
  op.kernel([=](Run& run) {
    std::vector<int64_t> chosen = read_integers(broadcast(run.open(mask), self.shape));
    std::vector<double> values = read_doubles(run.open(self));
    for (size_t i = 0; i < values.size(); i++) values[i] = chosen[i] != 0 ? scalar->real : values[i];
    write(run.open(self), values);
  });
}
EMU_END(aclnnInplaceMaskedFillScalar)

EMU_FIRST_PHASE(aclnnArange, const aclScalar* start, const aclScalar* end, const aclScalar* step, aclTensor* out_) {
  auto first = op.scalar("start", start), by = op.scalar("step", step);
  op.scalar("end", end);
  Tensor out = op.output("out", out_);
  op.require_present({out});
  if (out.empty()) return;
  op.kernel([=](Run& run) {
    std::vector<double> values(static_cast<size_t>(out.count()));
    for (size_t i = 0; i < values.size(); i++) values[i] = first->real + static_cast<double>(i) * by->real;
    write(run.open(out), values);
  });
}
EMU_END(aclnnArange)
