"""ONNX's reference evaluator: gradients written as graphs of ONNX operators.

pip install onnx==1.23.2
PYTHONPATH=examples aclnn-oracle run --backend onnx_reference:Reference --tier smoke -k first_look
"""

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from oracle.adapter import Takes, store

# The inputs by aclnn name in the graph's order, and the graph, whose output is r.
GRAPHS = {
    "aclnnLogSigmoidBackward": (("gradOutput", "self"), "n = Neg(b) s = Sigmoid(n) r = Mul(a, s)"),
    "aclnnSigmoidBackward": (("gradOutput", "output"), "p = Mul(b, b) q = Sub(b, p) r = Mul(a, q)"),
    "aclnnSoftmaxBackward": (
        ("gradOutput", "output"),
        "p = Mul(a, b) s = ReduceSum<keepdims = 1>(p, dim) t = Mul(b, s) r = Sub(p, t)",
    ),
    "aclnnTanhBackward": (("gradOutput", "output"), "p = Mul(b, b) q = Mul(a, p) r = Sub(a, q)"),
}
TYPES = {"float16": "float16", "bfloat16": "bfloat16", "float32": "float"}
TAKES = Takes("the reference evaluator", operators=GRAPHS, dtypes=TYPES, mixed=False, ranks=range(1, 9))


class Reference:
    name = "onnx_reference"
    device = "cpu"

    def __init__(self):
        self.versions = {"onnx": onnx.__version__}
        self.evaluators = {}

    def unsupported(self, call):
        return TAKES.reason(call)

    def evaluator(self, op, dtype):
        """Parse an operator's graph for tensors of a dtype, once."""
        if (op, dtype) not in self.evaluators:
            kind = TYPES[dtype]
            text = f"g ({kind} a, {kind} b, int64[1] dim) => ({kind} r) {{ {GRAPHS[op][1]} }}"
            model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
            self.evaluators[op, dtype] = ReferenceEvaluator(model)
        return self.evaluators[op, dtype]

    def run(self, call):
        a, b = (call.inputs[name] for name in GRAPHS[call.op][0])
        axis = np.array([call.attrs.get("dim", 0)], np.int64)
        (result,) = self.evaluator(call.op, a.dtype.name).run(None, {"a": a, "b": b, "dim": axis})
        store(call, result)
