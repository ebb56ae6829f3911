"""An operator from outside: its kernel is compiled into a custom package, its checks are Python, with every C type."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from oracle import Call, OracleError, TensorSpec
from oracle.cann import library
from oracle.cann.headers import add_headers
from oracle.emulator import add_custom, build_custom
from oracle.model.aclnn import SUCCESS, Status
from oracle.numerics.golden.elementwise import Formula
from oracle.operators import OPERATORS, Operator
from oracle.operators.definition.parameters import Parameter
from oracle.operators.definition.roles import MAIN

NAME = "aclnnMyDifference"
SOURCE = """
// out = (self - other) * alpha * factor + shift, negated on demand; count = how many elements; mode is "plain".
#include "ops/checks.h"

using namespace emu;

EMU_C aclnnStatus aclnnMyDifferenceGetWorkspaceSize(const aclTensor* self, const aclTensor* other,
                                                    const aclScalar* alpha, float factor, double shift, bool negate,
                                                    char* mode, int64_t unused, aclTensor* out_, aclTensor* count_,
                                                    uint64_t* workspaceSize, aclOpExecutor** executor) {
  static FirstPhase phase("aclnnMyDifference");
  return phase(workspaceSize, executor, [&](Op& op) {
    Tensor x = op.input("self", self), y = op.input("other", other);
    auto a = op.optional_scalar("alpha", alpha);
    double f = op.attribute("factor", factor), s = op.attribute("shift", shift);
    bool n = op.attribute("negate", negate);
    op.attribute("mode", static_cast<const char*>(mode));
    op.attribute("unused", unused);
    Tensor out = op.output("out", out_), count = op.output("count", count_);
    if (!op.ask_checks("aclnnMyDifference")) return;
    op.workspace({x, y, out});
    op.kernel([=](Run& run) {
      std::vector<float> xs = read_floats(broadcast(run.open(x), out.shape));
      std::vector<float> ys = read_floats(broadcast(run.open(y), out.shape));
      float scale = a == nullptr ? 1.0f : a->to_float();
      for (size_t i = 0; i < xs.size(); i++) {
        xs[i] = static_cast<float>(static_cast<double>((xs[i] - ys[i]) * scale) * f + s) * (n ? -1.0f : 1.0f);
      }
      write(run.open(out), xs);
      write(run.open(count), std::vector<int64_t>{static_cast<int64_t>(xs.size())});
    });
  });
}
EMU_SECOND_PHASE(aclnnMyDifference)
"""


def parameter(name, kind="attr", c="int64"):
    return Parameter(name, kind, MAIN if name == "self" else None, c=c)


PARAMETERS = (
    parameter("self", "input"), parameter("other", "input"), parameter("alpha", c="aclScalar"),
    parameter("factor", c="float"), parameter("shift", c="double"), parameter("negate", c="bool"),
    parameter("mode", c="char*"), parameter("unused"), parameter("out", "output"), parameter("count", "output"),
)  # fmt: skip


DIFFERENCE = Operator(NAME, PARAMETERS, (), lambda a, platform: iter(()), ("self",), Formula(lambda x: x))


class Checks:
    """The calls that the emulator asked about, and the answers that it gets."""

    def __init__(self):
        self.asked = []
        self.status, self.writes = SUCCESS, True

    def validate(self, call):
        self.asked.append(call)
        if isinstance(self.status, Exception):
            raise self.status
        return self.status


@pytest.fixture
def checks(emulator, tree, monkeypatch):
    """The checks of the operator, with its package. A test requests this fixture before the device."""
    monkeypatch.setitem(OPERATORS._all(), NAME, DIFFERENCE)
    add_custom(build_custom("my_difference", {"my_difference.cpp": SOURCE}, toolkit=tree))
    made = Checks()
    monkeypatch.setattr(library, "validate", made.validate)
    monkeypatch.setattr(library, "writes", lambda call: made.writes)
    return made


def difference(shape=(3, 2), **attrs):
    given = {"alpha": 0.1, "factor": 0.5, "shift": 0.25, "negate": True, "mode": 'a "mode"\n', "unused": -(2**63)}
    inputs = {"self": np.arange(6, dtype=np.float32).reshape(3, 2), "other": np.float16([[1], [2], [3]])}
    outputs = {"out": np.full(shape, 7, np.float32), "count": np.zeros(1, np.int64)}
    return Call(NAME, "ascend910b", inputs, {**given, **attrs}, outputs)


def expected(call, alpha=0.1):
    difference = (call.inputs["self"] - call.inputs["other"].astype(np.float32)) * np.float32(alpha)
    return -(difference.astype(np.float64) * 0.5 + 0.25).astype(np.float32)


def test_its_kernel_runs_with_all_that_the_call_holds(checks, device):
    call = difference()
    assert device.run(call).ok
    np.testing.assert_array_equal(call.outputs["out"], expected(call))
    assert call.outputs["count"] == 6
    (asked,) = checks.asked
    assert asked.attrs == call.attrs
    assert (asked.op, asked.soc) == (NAME, "ascend910b")
    for name in ("self", "other", "out", "count"):
        received, given = asked.spec(name), call.spec(name)
        assert (received.shape, received.dtype, received.format) == (given.shape, given.dtype, given.format)


def test_a_null_scalar_and_a_null_string_arrive(checks, device):
    call = difference(alpha=None, mode=None)
    assert device.run(call).ok
    np.testing.assert_array_equal(call.outputs["out"], expected(call, 1))
    assert checks.asked[0].attrs == call.attrs


@pytest.mark.parametrize("alpha", [True, 3, -0.5, float("inf"), 1 + 2j, np.float32(0.1), np.uint64(2**64 - 1)])
def test_the_checks_see_a_scalar_as_it_was_given(checks, device, alpha):
    checks.writes = False
    call = difference(alpha=alpha)
    assert device.run(call).ok
    seen = checks.asked[0].attrs["alpha"]
    assert type(seen) is type(alpha)
    assert seen == alpha
    assert (call.outputs["out"] == 7).all()  # success without a kernel


def test_a_refusal_has_the_checks_words_and_status_and_checks_that_fail_are_an_inner_error(checks, device):
    refusal = "mode is 'x'; it must be 'plain' — or nothing"
    for answer, code, text in (
        (Status(161002, refusal), 161002, refusal),
        (RuntimeError("they are broken"), 561000, "RuntimeError: they are broken"),
    ):
        checks.status = answer
        status = device.run(difference())
        assert (status.code, text in status.reason) == (code, True), status.reason


def test_tensors_without_data_are_described_with_format_strides_and_storage(checks, device):
    checks.status = Status(161002, "no")
    call = difference()
    spec = TensorSpec((3, 2), "complex64", format="NCHW", strides=(1, 3), offset=4, storage_shape=(40,))
    call.inputs = {"self": spec, "other": None}
    device.run(call)
    received = checks.asked[0].inputs
    assert received["other"] is None
    for field in ("shape", "dtype", "format", "strides", "offset", "storage_shape"):
        assert getattr(received["self"], field) == getattr(spec, field)


def test_a_package_is_built_once_per_text_and_toolkit(tree, monkeypatch):
    first = build_custom("my_difference", {"my_difference.cpp": SOURCE}, toolkit=tree)
    monkeypatch.setattr("oracle.emulator.toolkit._compile", lambda *_: pytest.fail("compiled again"))
    assert build_custom("my_difference", {"my_difference.cpp": SOURCE}, toolkit=tree) == first


def test_a_kernel_may_include_the_header_of_its_operator(tree, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    copy = shutil.copytree(tree, tmp_path / "tree")
    add_headers(copy)  # as `aclnn-oracle emulator build` does
    assert build_custom("header", {"a.cpp": '#include "aclnnop/aclnn_tanh_backward.h"'}, toolkit=copy).is_dir()


def test_what_does_not_compile_is_told_with_the_compiler_s_words(tree, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(OracleError, match=r"(?s)kernel of the custom operators 'broken' did not compile.*cheese"):
        build_custom("broken", {"broken.cpp": "out_of cheese;"}, toolkit=tree)
    with pytest.raises(OracleError, match="must be a word"):
        build_custom("../up", {"a.cpp": ""}, toolkit=tree)


def test_packages_are_found_newest_first_and_once(monkeypatch, tmp_path):
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", f"{tmp_path}/old")
    for name in ("one", "two", "one"):
        add_custom(tmp_path / name)
    assert os.environ["ASCEND_CUSTOM_OPP_PATH"].split(":") == [f"{tmp_path}/{name}" for name in ("one", "two", "old")]


FRAMEWORK = """
from ctypes import byref, c_uint64, c_void_p
from oracle.emulator import activate

activate("ascend910b")
from oracle.cann import Cann, find_toolkit

cann = Cann(find_toolkit())
print(cann.status("aclInit", None))
null = None, 0, None  # self, approximate, y
print(cann.status("aclnnGeluV2GetWorkspaceSize", *null, byref(c_uint64()), byref(c_void_p())))
"""


def test_checks_are_there_before_a_framework_initialises_cann(tree):
    """torch_npu calls aclInit with a file of its own; this fails if somebody has called aclInit before. It then calls
    operators without our backend."""
    done = subprocess.run([sys.executable, "-c", FRAMEWORK], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["0", "161001"], done.stderr
