"""MindSpore on the CPU: NLLLossGrad accepts a single sample but reads the class count from an axis that does not exist.
pip install mindspore==2.10.0

It reads the number of classes from memory outside the shape. Right labels are refused, and sometimes the process dies
of a segmentation fault. Each call runs in a process of its own.
"""

import subprocess
import sys

CODE = """
import mindspore as ms, numpy as np
from mindspore.ops.auto_generate.gen_ops_prim import NLLLossGrad
x, one = ms.Tensor(np.zeros(4, np.float32)), ms.Tensor(np.ones(1, np.float32))
gradient = NLLLossGrad("sum", -100)(x, one, ms.Tensor(np.array([2], np.int32)), ms.Tensor(np.ones(4, np.float32)), one)
print(gradient.asnumpy().tolist())
"""
done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
told = done.stdout.strip() or f"exit status {done.returncode}: {(done.stderr.strip().splitlines() or [''])[-1]}"
refused = next((line for line in done.stderr.splitlines() if "NLLLossGrad" in line and "labels" in line), "")
print(f"the gradient of four classes, label 2: {told} {refused}; exact [0.0, 0.0, -1.0, 0.0]")
sys.exit(told != "[0.0, 0.0, -1.0, 0.0]")
