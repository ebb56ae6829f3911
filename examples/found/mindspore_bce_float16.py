"""MindSpore on the CPU: binary cross entropy in float16 is NaN where input and target are both 0 or both 1.
pip install mindspore==2.10.0

The gradient is (x - t) / max(x * (1 - x), 1e-12) in float16. There 1e-12 rounds to 0: 0 / 0. In float32 it is 0.
"""

import sys

import mindspore as ms
import numpy as np

wrong = 0
for dtype in (np.float32, np.float16):
    x, target = (ms.Tensor(np.array(values, dtype)) for values in ((0, 0.25, 1), (0, 1, 1)))
    gradient = ms.grad(lambda a, t=target: ms.ops.binary_cross_entropy(a, t, reduction="sum"))(x).asnumpy()
    loss = ms.ops.binary_cross_entropy(x, target, reduction="none").asnumpy()
    for at, told in ((0, "x = t = 0"), (2, "x = t = 1")):
        right = gradient[at] == 0 and loss[at] == 0
        wrong += not right
        print(f"{np.dtype(dtype).name} {told}: loss {loss[at]}, gradient {gradient[at]}, both exactly 0")
print(f"MindSpore {ms.__version__}: {wrong} of 4 results are wrong")
sys.exit(wrong > 0)
