"""JAX on the CPU: the gradients of jax.nn by jax.vjp.

pip install jax==0.10.2
PYTHONPATH=examples aclnn-oracle run --backend jax_cpu:Jax --tier smoke -k first_look
"""

import jax
import numpy as np

from oracle.adapter import Takes, store


def softmax(t):
    """Return the softmax of logits. JAX differentiates from logits; those of a softmax t are log(t) + constant."""
    return (lambda x: jax.nn.softmax(x, t["dim"])), jax.numpy.log(t["output"])


FUNCTIONS = {  # aclnn name -> the function to differentiate, and at which input
    "aclnnGeluBackwardV2": lambda t: ((lambda x: jax.nn.gelu(x, approximate=t["approximate"] == "tanh")), t["self"]),
    "aclnnLogSigmoidBackward": lambda t: (jax.nn.log_sigmoid, t["self"]),
    "aclnnMishBackward": lambda t: (jax.nn.mish, t["self"]),
    "aclnnSiluBackward": lambda t: (jax.nn.silu, t["self"]),
    "aclnnSoftmaxBackward": softmax,
}
TAKES = Takes("jax.nn", operators=FUNCTIONS, mixed=False)


class Jax:
    name = "jax_cpu"
    device = "cpu"

    def __init__(self):
        jax.config.update("jax_platforms", "cpu")
        self.versions = {"jax": jax.__version__}

    def unsupported(self, call):
        if reason := TAKES.reason(call):
            return reason
        if call.op == "aclnnSoftmaxBackward":
            y = np.asarray(call.inputs["output"], np.float64)
            if not np.all(y > 0) or not np.allclose(y.sum(call.attrs["dim"]), 1, atol=1e-6):
                return "jax.nn differentiates from the logits, which only a softmax has"
        return None

    def run(self, call):
        tensors = {name: None if array is None else jax.numpy.asarray(array) for name, array in call.inputs.items()}
        function, where = FUNCTIONS[call.op](tensors | call.attrs)
        (out,) = call.outputs.values()
        value, pull_back = jax.vjp(function, jax.numpy.broadcast_to(where, out.shape))
        store(call, *pull_back(jax.numpy.broadcast_to(tensors["gradOutput"], value.shape)))
