"""MindSpore on the CPU: the gradient of fast_gelu is NaN for x <= -414 in float32.
pip install mindspore==2.10.0

The function itself is right there (-0). Its gradient multiplies an exponential that has overflowed by 0; the exact
gradient is smaller than every float32 and rounds to -0.
"""

import sys

import mindspore as ms
import numpy as np

x = np.array([-1000, -415, -413, -50, 0, 3], np.float32)
found = ms.grad(ms.ops.fast_gelu)(ms.Tensor(x)).asnumpy()
with np.errstate(over="ignore"):
    e = np.exp(-1.702 * np.abs(x.astype(np.float64)))
s = np.where(x < 0, e, 1) / (1 + e)
exact = s * (1 + 1.702 * x * (1 - s))
right = np.abs(found - exact) <= 1e-6 * np.abs(exact) + 1e-36
for point, value, due, good in zip(x, found, exact, right, strict=True):
    print(f"x = {point:g}: MindSpore {value:.6g}, exact {due:.6g}{'' if good else ': wrong'}")
print(f"MindSpore {ms.__version__}: {(~right).sum()} of {x.size} gradients of fast_gelu are wrong")
sys.exit(bool((~right).any()))
