// 1 / (1 + exp(x)) for x = 1, 2, 3, 4
#include "aclnnop/aclnn_logsigmoid_backward.h"
#include "example.h"

int main() {
  Device device;
  std::vector<int64_t> shape = {2, 2};
  DeviceTensor gradOutput(std::vector<float>(4, 1.0f), shape, ACL_FLOAT),
      self(std::vector<float>{1, 2, 3, 4}, shape, ACL_FLOAT);
  DeviceTensor buffer(std::vector<float>{0}, {1}, ACL_FLOAT), gradInput(std::vector<float>(4, 0.0f), shape, ACL_FLOAT);
  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  expect(aclnnLogSigmoidBackwardGetWorkspaceSize(gradOutput, self, buffer, gradInput, &workspaceSize, &executor),
         "first phase");
  device.run(aclnnLogSigmoidBackward, workspaceSize, executor);
  gradInput.print();
}
