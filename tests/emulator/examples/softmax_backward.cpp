// The column sums of gradOutput * output are 28 and 38.
#include "aclnnop/aclnn_softmax_backward.h"
#include "example.h"

int main() {
  Device device;
  std::vector<int64_t> shape = {4, 2};
  DeviceTensor gradOutput(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}, shape, ACL_FLOAT),
      output(std::vector<float>{1, 1, 1, 2, 2, 2, 3, 3}, shape, ACL_FLOAT);
  DeviceTensor out(std::vector<float>(8, 0.0f), shape, ACL_FLOAT);
  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  expect(aclnnSoftmaxBackwardGetWorkspaceSize(gradOutput, output, 0, out, &workspaceSize, &executor), "first phase");
  device.run(aclnnSoftmaxBackward, workspaceSize, executor);
  out.print();
}
