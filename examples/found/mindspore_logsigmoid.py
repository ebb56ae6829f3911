"""MindSpore on the CPU: the gradient of logsigmoid is NaN for x <= -89 and 0 for x >= 17.
pip install mindspore==2.10.0

MindSpore differentiates log(sigmoid(x)) as g / s * s * (1 - s), s = sigmoid(x). The result is 0 / 0 where s is 0. It is
0 where s rounds to 1.
"""

import sys

import mindspore as ms
import numpy as np

wrong = 0
for dtype, points in ((np.float32, (-89, -20, 0, 16, 18)), (np.float16, (-12, -5, 0, 4, 9))):
    x = np.array(points, dtype)
    found = ms.vjp(ms.ops.logsigmoid, ms.Tensor(x))[1](ms.Tensor(np.ones_like(x)))[0].asnumpy()
    for point, value in zip(points, found.astype(float), strict=True):
        exact = 1 / (1 + np.exp(float(point)))
        right = abs(value - exact) <= 0.05 * exact
        wrong += not right
        told = "" if right else ": wrong"
        print(f"{np.dtype(dtype).name} x = {point}: MindSpore {value:.9g}, exact {exact:.9g}{told}")
print(f"MindSpore {ms.__version__}: {wrong} of 10 gradients of logsigmoid are more than 5 % off")
sys.exit(wrong > 0)
