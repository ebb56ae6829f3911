"""PyTorch's operators: views are shared and not copied; cases that aten cannot run are skipped with a reason."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from views import BASE, VIEWS

pytest.importorskip("torch")

import torch

from oracle import Call, OracleError
from oracle.backends import load
from oracle.backends.torch import from_numpy, to_numpy
from oracle.case.expectations import expectations_file, load_expectations
from oracle.catalogue import default_dir, load_all, select
from oracle.operators import OPERATORS, Aten
from oracle.place import Bench
from oracle.settings.settings import Settings


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.int64, np.uint8])
@pytest.mark.parametrize("view", [*VIEWS, "negative"])
def test_tensors_have_the_arrays_values_and_layout(view, dtype):
    base = BASE.astype(dtype)
    array = base[::-1] if view == "negative" else VIEWS[view](base)
    tensor = from_numpy(array)
    assert tensor.element_size() == array.itemsize
    assert np.array_equal(to_numpy(tensor), array)
    if view == "expanded":
        assert tensor.stride() == (0, 1)
    if view == "transposed":
        assert tensor.stride() == (1, 6)
        assert tensor.data_ptr() == array.__array_interface__["data"][0]


def test_the_smoke_tier_differs_only_where_the_expectation_file_says_why():
    bench, cases = Bench(Settings(backend="torch")), load_all()
    expected = load_expectations(expectations_file(default_dir(), "torch"))
    expected.require_matches(cases)
    lines = [bench.run_case(c, expected.of(c, "ascend910b")) for c in select(cases, tier="smoke", soc="ascend910b")]
    assert bench.about.versions["torch"] == torch.__version__
    assert [line.id for line in lines if not line.ok] == []
    assert sum(line.status == "pass" for line in lines) > 40
    assert all(line.reason for line in lines if line.status in ("skip", "xfail"))


def made(op, inputs, attrs=None, out=(2, 3), dtype=np.float32):
    return Call(op, "ascend910b", inputs, attrs or {}, {"out": np.zeros(out, dtype)})


X = np.full((2, 3), 0.5, np.float32)
NLL = {"gradOutput": X[0, :1], "self": X, "target": np.zeros(2, np.int64), "weight": X[0], "totalWeight": X[0, :1]}
MIXED = {"gradOutput": X, "self": X, "target": X.astype(np.float16), "weightOptional": None}
SKIPS = [
    (made("aclnnSoftmaxBackward", {"gradOutput": X, "output": X}, {"dim": 5}), "no GetWorkspaceSize"),
    (made("aclnnSoftmaxBackward", {"gradOutput": X[:0], "output": X[:0]}, {"dim": 0}, (0, 3)), "no early return"),
    (made("aclnnBinaryCrossEntropyBackward", MIXED, {"reduction": 0}), "one dtype, not float16 and float32"),
    (made("aclnnNLLLossBackward", {**NLL, "target": np.zeros(2, np.int32)}, {"reduction": 1, "ignoreIndex": -1}),
        "class indices of int64 or uint8, not int32"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), SKIPS, ids=[message for _, message in SKIPS])
def test_what_aten_cannot_do_is_skipped_with_the_reason(call, message):
    assert message in load("torch").unsupported(call)


def test_the_case_s_buffer_is_not_read():
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    answers = []
    for buffer in (np.zeros(0, np.float32), np.full(7, 9, np.float32)):
        call = Call("aclnnLogSigmoidBackward", "ascend910b", {"gradOutput": x, "self": x, "buffer": buffer}, {}, {})
        call.outputs["gradInput"] = np.zeros(7, np.float32)
        load("torch").run(call)
        answers.append(call.outputs["gradInput"].tolist())
    assert answers[0] == answers[1]


def test_another_output_dtype_is_cast_at_the_end_like_the_host_does():
    call = made("aclnnSoftmaxBackward", {"gradOutput": X, "output": X}, {"dim": 1}, dtype=ml_dtypes.bfloat16)
    load("torch").run(call)
    assert call.outputs["out"].dtype == ml_dtypes.bfloat16
    assert np.allclose(call.outputs["out"].astype(np.float32), 0.5 * (0.5 - 0.75))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "tpu"}, "known: cpu, cuda, cuda:N"),
        ({"threads": "0"}, "must be a positive integer"),
        *([] if torch.cuda.is_available() else [({"device": "cuda"}, "sees no CUDA device")]),
    ],
)
def test_wrong_options_are_told(options, message):
    with pytest.raises(OracleError, match=message):
        load("torch", options)


def ran(blended, monkeypatch, aten, **attrs):
    """Return the record of a case of the blended operator with a function of aten."""
    mapped = replace(blended.OPERATOR, aten=aten)
    monkeypatch.setitem(OPERATORS._all(), mapped.name, mapped)
    return Bench(Settings(backend="torch", isolate=False)).run_case(blended.case(**attrs))


@pytest.mark.parametrize(("aten", "reason"), [
    (None, "no function of aten is known for aclnnBlendedBackward: its declaration has no aten=Aten(...)"),
    (Aten(None, npu=lambda aten, t: t["input"]), "its declaration has one for torch_npu alone"),
    (Aten(lambda aten, t: aten.no_such_function(t["input"])), "no_such_function"),  # this PyTorch lacks it
])  # fmt: skip
def test_a_function_of_aten_that_is_not_there_is_a_skip_that_says_why(blended, monkeypatch, aten, reason):
    record = ran(blended, monkeypatch, aten)
    assert (record.status, reason in record.reason) == ("skip", True), record.reason


def test_a_function_that_asks_for_another_name_is_told_the_names_of_the_call(blended, monkeypatch):
    record = ran(blended, monkeypatch, Aten(lambda aten, t: t["gradOut"]))
    assert record.status == "error"
    assert "'gradOut'; it can have gradient, input, " in record.reason


@pytest.mark.parametrize("scale", [None, 0.25])
def test_attributes_reach_aten_by_name_and_a_null_scalar_is_its_usual_value(blended, monkeypatch, scale):
    def call(aten, t):
        factor = 2.0 if t["twice"] else 1.0
        return t["gradient"] * (t["input"] * t["scale"] + t["slope"]) * factor / (24 if t["how"] == 1 else 1)

    attrs = {"scale": scale, "slope": -0.5, "twice": True, "how": 1}
    assert ran(blended, monkeypatch, Aten(call, mixed=True), gradient=(6,), **attrs).status == "pass"


def test_mixed_dtypes_go_to_aten_where_it_takes_them():
    g, y = np.ones((3, 1), np.float32), np.full((3, 4), 0.25, ml_dtypes.bfloat16)
    out = np.zeros((3, 4), np.float32)
    call = Call("aclnnSigmoidBackward", "ascend910b", {"gradOutput": g, "output": y}, {}, {"gradInput": out})
    backend = load("torch")
    assert backend.unsupported(call) is None
    assert backend.run(call) is None
    assert (out == 0.1875).all()
