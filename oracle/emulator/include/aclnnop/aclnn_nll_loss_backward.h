#ifndef ACLNN_EMULATOR_NLL_LOSS_BACKWARD_H
#define ACLNN_EMULATOR_NLL_LOSS_BACKWARD_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

ACL_FUNC_VISIBILITY aclnnStatus aclnnNLLLossBackwardGetWorkspaceSize(const aclTensor* gradOutput, const aclTensor* self,
                                                                     const aclTensor* target, const aclTensor* weight,
                                                                     int64_t reduction, int64_t ignoreIndex,
                                                                     const aclTensor* totalWeight, aclTensor* out,
                                                                     uint64_t* workspaceSize, aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnNLLLossBackward(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                                     aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
