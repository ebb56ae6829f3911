#ifndef ACLNN_EMULATOR_LOGSIGMOID_BACKWARD_H
#define ACLNN_EMULATOR_LOGSIGMOID_BACKWARD_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

ACL_FUNC_VISIBILITY aclnnStatus aclnnLogSigmoidBackwardGetWorkspaceSize(const aclTensor* gradOutput,
                                                                        const aclTensor* self, const aclTensor* buffer,
                                                                        aclTensor* gradInput, uint64_t* workspaceSize,
                                                                        aclOpExecutor** executor);
ACL_FUNC_VISIBILITY aclnnStatus aclnnLogSigmoidBackward(void* workspace, uint64_t workspaceSize,
                                                        aclOpExecutor* executor, aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
