"""MindSpore on the CPU: binary cross entropy reads past the end of a weight that has to be broadcast.
pip install mindspore==2.10.0

The documentation says that the weight's shape "must be able to broadcast", and that it must have the input's shape. The
operator accepts a smaller weight. The CPU kernel then reads as many elements of it as the input has.
"""

import sys

import mindspore as ms
import numpy as np

x = np.linspace(0.1, 0.9, 60, dtype=np.float32).reshape(20, 3)
weight = np.array([1, 2, 3], np.float32)
logits, target = ms.Tensor(x), ms.Tensor(np.ones_like(x))
found = ms.ops.binary_cross_entropy(logits, target, ms.Tensor(weight), reduction="none").asnumpy()
exact = -np.log(x.astype(np.float64)) * weight
wrong = ~(np.abs(found - exact) <= 1e-4 * exact)
for row, column in np.argwhere(wrong)[:3]:
    print(f"element [{row}, {column}]: MindSpore {found[row, column]:.9g}, exact {exact[row, column]:.9g}")
print(f"MindSpore {ms.__version__}: {wrong.sum()} of {x.size} losses are wrong with a weight of shape (3,)")
sys.exit(bool(wrong.any()))
