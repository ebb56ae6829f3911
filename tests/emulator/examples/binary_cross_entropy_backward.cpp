// 0.1 * (0.3 - 0.5) / (0.3 * 0.7) = -0.095238
#include "aclnnop/aclnn_binary_cross_entropy_backward.h"
#include "example.h"

int main() {
  Device device;
  std::vector<int64_t> shape = {2, 2};
  DeviceTensor gradOutput(std::vector<float>(4, 0.1f), shape, ACL_FLOAT),
      self(std::vector<float>(4, 0.3f), shape, ACL_FLOAT);
  DeviceTensor target(std::vector<float>(4, 0.5f), shape, ACL_FLOAT),
      weight(std::vector<float>(4, 1.0f), shape, ACL_FLOAT);
  DeviceTensor out(std::vector<float>(4, 0.0f), shape, ACL_FLOAT);
  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  expect(aclnnBinaryCrossEntropyBackwardGetWorkspaceSize(gradOutput, self, target, weight, 0, out, &workspaceSize,
                                                         &executor),
         "first phase");
  device.run(aclnnBinaryCrossEntropyBackward, workspaceSize, executor);
  out.print();
}
