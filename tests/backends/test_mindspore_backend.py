"""MindSpore's gradients: its own primitives where the device has a kernel, otherwise its composed forms.

Run where MindSpore is installed (`.ci/full`), since its binaries need NumPy 1.x.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("mindspore")

import mindspore

from oracle import Call, OracleError, golden
from oracle.backends import load
from oracle.backends.mindspore import _open, _tensor, to_numpy
from oracle.case.prepare import Memory
from oracle.model.aclnn import DEFAULT_SOC

_open("CPU", 0)  # MindSpore chooses its device before its first operator
BASE = np.arange(24, dtype=np.float32).reshape(4, 6)


def softmax(g, y, dim):
    return Call("aclnnSoftmaxBackward", "ascend910b", {"gradOutput": g, "output": y}, {"dim": dim}, {"out": g.copy()})


def log_sigmoid(x):
    inputs = {"gradOutput": np.ones_like(x), "self": x, "buffer": x}
    return Call("aclnnLogSigmoidBackward", "ascend910b", inputs, {}, {"gradInput": x.copy()})


def test_tensors_have_the_arrays_values_dtype_and_layout():
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.int64):
        base = BASE.astype(dtype)
        for array in (base, base.T, base[:, ::2], base[1:, 1:], base[:0], base[::-1]):
            tensor = _tensor(array)
            assert np.array_equal(to_numpy(tensor), array)
            if min(array.strides) >= 0 and array.size:
                assert tuple(tensor.stride()) == tuple(s // array.itemsize for s in array.strides)


def test_the_composed_softmax_gradient_has_the_bits_of_mindspore_s_own_differentiation():
    generator = np.random.default_rng(0)
    for dtype in (np.float32, np.float16):
        x, g = (generator.standard_normal((40, 33)).astype(dtype) for _ in range(2))
        for dim in (-1, 0):
            logits, gradient = (mindspore.Tensor.from_numpy(a) for a in (x, g))

            def forward(tensor, dim=dim):
                return mindspore.ops.softmax(tensor, dim)

            (own,) = mindspore.vjp(forward, logits)[1](gradient)
            call = softmax(g, forward(logits).asnumpy(), dim)
            load("mindspore").run(call)
            assert np.array_equal(call.outputs["out"], own.asnumpy())


def test_the_device_of_a_record_says_where_a_gradient_is_composed():
    backend = load("mindspore")
    assert backend.unsupported(log_sigmoid(BASE)) is None
    backend.run(log_sigmoid(BASE))
    assert backend.device == "CPU, composed gradient"
    g = np.full((2, 3), 0.5, np.float32)
    inputs = {"gradOutput": g, "self": g, "target": g, "weightOptional": None}
    call = Call("aclnnBinaryCrossEntropyBackward", "ascend910b", inputs, {"reduction": 0}, {"out": g.copy()})
    assert backend.unsupported(call) is None
    backend.run(call)
    assert backend.device == "CPU"


def test_what_mindspore_cannot_do_is_skipped_in_its_own_words():
    x = BASE.astype(ml_dtypes.bfloat16)
    text = load("mindspore").unsupported(softmax(x, x, 0))
    assert "SoftmaxBackward unregistered" in text
    assert "does not support this kernel data type" in text


def test_an_operator_without_a_function_of_mindspore_says_what_its_declaration_lacks(blended):
    call = Memory.make(blended.case(), soc=DEFAULT_SOC, seed=0).call
    assert "its declaration has no mindspore=MindSpore(...)" in load("mindspore").unsupported(call)


def test_operands_of_a_loss_that_is_summed_are_broadcast_among_each_other():
    target = np.tile(BASE[0] / 6, (4, 1))
    inputs = {"self": BASE, "target": target, "weightOptional": BASE[0], "posWeightOptional": BASE[1:2]}
    outputs = {"out": np.zeros((), np.float32)}
    call = Call("aclnnBinaryCrossEntropyWithLogits", "ascend910b", inputs, {"reduction": 2}, outputs)
    load("mindspore").run(call)
    np.testing.assert_allclose(call.outputs["out"], golden(call)["out"], rtol=1e-5)  # 24 terms added in float32


@pytest.mark.parametrize(
    ("device", "message"), [("GPU", "known: CPU, Ascend, Ascend:N"), ("Ascend", "sees no such device here")]
)
def test_wrong_options_are_told(device, message):
    if device == "Ascend" and mindspore.hal.is_available("Ascend"):
        pytest.skip("there is one")
    with pytest.raises(OracleError, match=message):
        load("mindspore", {"device": device})
