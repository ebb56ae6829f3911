// What a program that calls aclnn includes first.
#ifndef ACLNN_EMULATOR_ACL_H
#define ACLNN_EMULATOR_ACL_H

#include "acl/acl_base.h"
#include "acl/acl_rt.h"

#endif
