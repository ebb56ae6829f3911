"""MindSpore on the CPU: the gradient of hardswish overflows in an intermediate step. pip install mindspore==2.10.0

g * (2x + 3) / 6 is computed from left to right. g * (2x + 3) can exceed float32's range although the gradient does not.
"""

import sys

import mindspore as ms
import numpy as np
from mindspore.ops.auto_generate.gen_ops_prim import HSwishGrad

g, x = np.float32(2.0**126), np.float32(2)
got = float(HSwishGrad()(ms.Tensor([g]), ms.Tensor([x])).asnumpy()[0])
exact = 2.0**126 * (2 * 2 + 3) / 6
print(f"the gradient 2^126 at x = 2: MindSpore {got:g}, exact {exact:g}")
sys.exit(not abs(got - exact) < 1e-6 * exact)
