"""MindSpore on the CPU: some threads flush subnormal numbers to 0, so the result depends on the thread of an element.
pip install mindspore==2.10.0

The threads of MindSpore's pool flush subnormals, the calling thread does not. MindSpore times the first launches of a
kernel to decide how to divide a tensor among threads. So the same product is 0 in one place and right in another.
"""

import sys

import mindspore as ms
import numpy as np

counts = {}
for size in (3, 8, 1000, 100_000):
    small, one = ms.Tensor(np.full(size, 1e-39, np.float32)), ms.Tensor(np.ones(size, np.float32))
    counts[size] = [int((ms.ops.mul(small, one).asnumpy() == 0).sum()) for _ in range(12)]
    print(f"{size} products 1e-39 * 1, twelve launches: {counts[size]} of them are 0")
zeros, products = sum(map(sum, counts.values())), 12 * sum(counts)
print(f"MindSpore {ms.__version__}: {zeros} of {products} are 0; exactly 1e-39, which float32 has")
sys.exit(zeros > 0)
