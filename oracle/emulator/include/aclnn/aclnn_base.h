// What operators' headers of CANN include: the types and statuses are those of acl_meta.h.
#ifndef ACLNN_EMULATOR_ACLNN_BASE_H
#define ACLNN_EMULATOR_ACLNN_BASE_H

#include "aclnn/acl_meta.h"

#endif
