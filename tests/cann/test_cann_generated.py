"""Kernels generated from a declaration compute the declared orders in the emulated CANN, bit for bit."""

from __future__ import annotations

import sys
import textwrap
from contextlib import closing

import numpy as np
import pytest

from oracle.backends import load
from oracle.cann.generated import source
from oracle.emulator import add_custom, build_custom
from oracle.model.call import Call
from oracle.model.errors import OracleError
from oracle.operators import OPERATORS, compute, operator

PAGE = """
from oracle.numerics.orders.kernel_orders import Formula
from oracle.numerics.expressions import equal, maximum, minimum, ratio, sign, where
from oracle.operators import Operator
from oracle.operators.definition.checks import dtype_in, ends_if_empty, float_types, not_null, promotes
from oracle.operators.definition.parameters import flag, number, output, reduction, tensor
from oracle.operators.definition.roles import BROADCAST, MAIN


def formula(g, x, w, b, f):
    inside = (x > -1) & ~(x >= 2) | equal(x, 3)
    return where(inside, g * w * (x * ratio(1, 3) + b), maximum(minimum(g, x), sign(x) * f)) - abs(x)


def other_order(g, x, w, b, f):
    inside = (x > -1) & ~(x >= 2) | equal(x, 3)
    return where(inside, w * (x * ratio(1, 3) + b) * g, maximum(minimum(g, x), f * sign(x))) - abs(x)


def checks(a, platform):
    yield not_null(a, "grad", "self", "out")
    yield dtype_in(a, "self", float_types(platform))
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnGeneratedBackward",
    parameters=(
        tensor("grad", "g", BROADCAST),
        tensor("self", "x", MAIN),
        tensor("scale", "w", BROADCAST, optional=True),
        number("beta", "b", optional=True, plain=0.5),
        flag("keep", "f"),
        reduction("reduction"),
        output("out"),
    ),
    documented=("ascend950",),
    checks=checks,
    empty=("self",),
    computes=Formula(formula, {"950": formula, "tbe": other_order}),
)
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outside")
    (folder / "generated_backward_page.py").write_text(textwrap.dedent(PAGE))
    sys.path.insert(0, str(folder))
    OPERATORS.add("generated_backward_page:OPERATOR")
    yield operator("aclnnGeneratedBackward")
    OPERATORS.remove("aclnnGeneratedBackward")
    sys.path.remove(str(folder))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("given", [True, False])
def test_a_generated_kernel_gives_the_declared_orders_bits(generated, emulator, tree, dtype, given):
    add_custom(build_custom(generated.slug, {"generated.cpp": source(generated)}, toolkit=tree))
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 4, (5, 7)).astype(dtype)
    x[0, :6] = [3, 2, -1, 0, -0.0, np.nan]
    inputs = {"grad": rng.normal(size=7).astype(dtype), "self": x, "scale": rng.normal(size=(5, 1)).astype(dtype)}
    inputs["scale"] = inputs["scale"] if given else None
    attrs = {"beta": 0.3 if given else None, "keep": given, "reduction": 1 if given else 0}
    call = Call(generated.name, "ascend910b", inputs, attrs, {"out": np.zeros_like(x)})
    with closing(load("aclnn", {"timeout": "20"})) as device:
        assert device.run(call).ok
    np.testing.assert_array_equal(call.outputs["out"], compute(call, numerics="kernel"))


def test_an_output_that_is_no_formula_of_its_place_or_row_gets_no_kernel_by_itself():
    with pytest.raises(OracleError, match="neither elementwise nor a formula with reductions"):
        source(operator("aclnnPreluBackward"))
