// Rules between data types (opbase, data_type_utils.h).
#pragma once

#include "acl/acl_base.h"
#include "core/error.h"

namespace emu {

// float16, bfloat16, float32, float64
EMU_PUBLIC bool is_float(aclDataType type);
EMU_PUBLIC bool is_complex(aclDataType type);
EMU_PUBLIC bool is_integer(aclDataType type);  // bool is none

// CanCast: complex to real, float to integer and anything but bool to bool have no cast.
EMU_PUBLIC bool can_cast(aclDataType from, aclDataType to);

// PromoteType: the type two types are computed in, ACL_DT_UNDEFINED if there is none.
EMU_PUBLIC aclDataType promote(aclDataType a, aclDataType b);

}  // namespace emu
