// Kernels that go wrong on demand: what they wrote, or what they must not write, is changed after the right kernel ran.
#include <cstring>
#include <limits>

#include "ops/executor.h"

namespace emu {
namespace {

constexpr int kStray = 8;  // elements written outside the view

// A value that is certainly wrong: a quarter more, or 1 where it was 0 or not finite.
void make_wrong(std::vector<double>& values) {
  double& one = values[values.size() / 2];
  one = one == 0 || one - one != 0 ? 1 : 1.25 * one + (one > 0 ? 1 : -1);
}

void fill(const View& view, double value) {
  write(view, std::vector<double>(static_cast<size_t>(view.count()), value));
}

// The bytes behind the view's highest element (or before its lowest) although they are not the kernel's to write.
void stray(const View& view, bool behind) {
  int64_t size = static_cast<int64_t>(aclDataTypeSize(view.type)), low = 0, high = 0;
  for (size_t i = 0; i < view.shape.size(); i++) {
    int64_t reach = (view.shape[i] - 1) * view.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  char* at = view.first + (behind ? high + 1 : low - kStray) * size;
  memset(at, 0x3C, static_cast<size_t>(kStray * size));
}

}  // namespace

void spoil(const Run& run, const std::vector<Tensor>& tensors, const std::vector<size_t>& inputs,
           const std::vector<size_t>& outputs, const std::string& action) {
  const Tensor& tensor = tensors[action == "input" ? inputs.at(0) : outputs.at(0)];
  View view = run.open(tensor);
  if (view.first == nullptr) return;
  if (action == "wrong" || action == "input") {
    std::vector<double> values = read_doubles(view);
    make_wrong(values);
    write(view, values);
  } else if (action == "zeros") {
    fill(view, 0);
  } else if (action == "nan") {
    fill(view, std::numeric_limits<double>::quiet_NaN());
  } else if (action == "overrun" || action == "underrun") {
    stray(view, action == "overrun");
  }
}

}  // namespace emu
