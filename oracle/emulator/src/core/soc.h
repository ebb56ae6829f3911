// The five products that can be emulated, and what differs between them.
#pragma once

#include "core/error.h"

namespace emu {

enum class KernelForm { k950, kTbeA2, kTbe910 };

struct Soc {
  const char* device;  // what aclrtGetSocName answers
  const char* soc;     // the name in documents
  bool bfloat16;       // the operators take bfloat16
  bool regbase;        // 950 only: the new host paths
  bool saturates;      // a float16 overflow gives the largest finite value
  bool jit;            // operators are compiled when called unless a program says otherwise: torch_npu then calls aclop
  KernelForm form;     // which of the public kernels computes
  int cores;
  long l2_bytes;
};

// The SoC that ACLNN_EMULATOR_SOC names (Ascend910B1 without it); throws Error for an unknown name.
EMU_PUBLIC const Soc& soc();

// Whether the operators follow a version of CANN or a later one (ACLNN_EMULATOR_CANN; without it 8.5, as the
// toolkit says of itself).
EMU_PUBLIC bool follows(const char* version);

}  // namespace emu
