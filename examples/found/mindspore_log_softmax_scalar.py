"""MindSpore on the CPU: LogSoftmaxGrad of a scalar never returns. pip install mindspore==2.10.0

LogSoftmax itself ends with an error ("Unknown Error!"). The call runs in a process of its own, ended after 20 s.
"""

import subprocess
import sys

CODE = """
import mindspore as ms, numpy as np
from mindspore.ops.auto_generate.gen_ops_prim import LogSoftmaxGrad
output, gradient = ms.Tensor(np.float32(0)), ms.Tensor(np.float32(1))
print(LogSoftmaxGrad(-1)(output, gradient).asnumpy())
"""
try:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=20)
    told = done.stdout.strip() or (done.stderr.strip().splitlines() or [""])[-1]
except subprocess.TimeoutExpired:
    told = "no answer in 20 s"
print(f"the gradient of a scalar, which is 0: {told}")
sys.exit(told == "no answer in 20 s")
