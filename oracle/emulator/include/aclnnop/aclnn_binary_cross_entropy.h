#ifndef ACLNN_EMULATOR_BINARY_CROSS_ENTROPY_H
#define ACLNN_EMULATOR_BINARY_CROSS_ENTROPY_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

ACL_FUNC_VISIBILITY aclnnStatus aclnnBinaryCrossEntropyGetWorkspaceSize(const aclTensor* self, const aclTensor* target,
                                                                        const aclTensor* weight, int64_t reduction,
                                                                        aclTensor* out, uint64_t* workspaceSize,
                                                                        aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnBinaryCrossEntropy(void* workspace, uint64_t workspaceSize,
                                                        aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
