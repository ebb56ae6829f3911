#ifndef ACLNN_EMULATOR_NLL_LOSS_H
#define ACLNN_EMULATOR_NLL_LOSS_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

ACL_FUNC_VISIBILITY aclnnStatus aclnnNLLLossGetWorkspaceSize(const aclTensor* self, const aclTensor* target,
                                                             const aclTensor* weight, int64_t reduction,
                                                             int64_t ignoreIndex, aclTensor* out,
                                                             aclTensor* totalWeightOut, uint64_t* workspaceSize,
                                                             aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnNLLLoss(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                                             aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
