// -3.1 * 1.1 and -6.5 * 1.3 at the targets, 0 elsewhere
#include "aclnnop/aclnn_nll_loss_backward.h"
#include "example.h"

int main() {
  Device device;
  DeviceTensor gradOutput(std::vector<float>{3.1f, 6.5f}, {2}, ACL_FLOAT),
      self(std::vector<float>{0, 1, 2, 3, 4, 5}, {2, 3}, ACL_FLOAT);
  DeviceTensor target(std::vector<int32_t>{0, 2}, {2}, ACL_INT32),
      weight(std::vector<float>{1.1f, 1.2f, 1.3f}, {3}, ACL_FLOAT);
  DeviceTensor totalWeight(std::vector<float>{0}, {1}, ACL_FLOAT), out(std::vector<float>(6, 0.0f), {2, 3}, ACL_FLOAT);
  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  expect(aclnnNLLLossBackwardGetWorkspaceSize(gradOutput, self, target, weight, 0, -100, totalWeight, out,
                                              &workspaceSize, &executor),
         "first phase");
  device.run(aclnnNLLLossBackward, workspaceSize, executor);
  out.print();
}
