"""The deviation of a single SoC's kernel applies to that SoC only."""

from __future__ import annotations

import numpy as np
import pytest
from calls import call_of

from oracle.numerics.floats.rounding import FLOAT32
from oracle.numerics.orders.formula import is_elementwise
from oracle.numerics.orders.kernel_orders import graphs_with
from oracle.operators import OPERATORS, compute, reference

SELU, LEAKY, SHRINK = "aclnnSeluBackward", "aclnnLeakyReluBackward", "aclnnHardshrinkBackward"


def judged(op: str, soc: str, attributes: dict | None = None, out: str = "", **inputs: np.ndarray):
    output = {OPERATORS[op].output: out} if out else {}
    call = call_of(op, soc, **inputs, **(attributes or {}), **output)
    return reference(call), compute(call)


def undecided(reference) -> np.ndarray:
    """Return a mask of the elements with two accepted answers."""
    return np.zeros(reference.golden.shape, bool) if reference.undecided is None else reference.undecided


def are_inside(answer: np.ndarray, reference) -> bool:
    return bool((np.abs(answer.astype(np.float64) - reference.value) <= reference.bound).all())


@pytest.mark.parametrize(("soc", "differs"), [("ascend950", False), ("ascend910b", True), ("ascend910", True)])
def test_a_kernel_that_departs_far_may_do_so_on_its_own_soc(soc: str, differs: bool) -> None:
    ones = np.ones(3, np.float32)
    reference, own = judged(SELU, soc, gradOutput=ones, result=np.array([-1, 0, 1], np.float32))
    assert not reference.unspecified.any()
    assert undecided(reference).tolist() == [False, differs, False]
    assert (own[1] == reference.golden[1]) is not differs
    assert are_inside(own, reference)
    assert are_inside(reference.golden, reference)
    assert not are_inside(own + 1, reference)


def test_a_kernel_that_departs_a_little_widens_the_bound_on_its_own_soc() -> None:
    given = {name: np.array([value], np.float32) for name, value in (("gradOut", 1), ("self", 0.25), ("target", 0))}
    bounds = {}
    for soc in ("ascend950", "ascend910b"):
        reference, own = judged("aclnnSmoothL1LossBackward", soc, {"beta": 0.5, "reduction": 0}, **given)
        assert not reference.unspecified.any()
        assert abs(float(own[0]) - reference.value[0]) <= reference.bound[0]
        bounds[soc] = reference.bound[0]
    assert bounds["ascend950"] < 4e-7 < 9e-7 < bounds["ascend910b"] < 2e-6


@pytest.mark.parametrize(("soc", "native"), [("ascend950", False), ("ascend910b", True)])
def test_a_kernel_that_does_not_widen_float16_rounds_its_scalars_and_products(soc: str, native: bool) -> None:
    g = np.linspace(1, 2, 400).astype(np.float16)
    attributes = {"negativeSlope": 0.01, "selfIsResult": False}
    reference, own = judged(LEAKY, soc, attributes, gradOutput=g, self=-g)
    assert np.array_equal(own, g * np.float16(0.01)) is native
    assert are_inside(own, reference)


def test_a_threshold_rounded_to_float16_leaves_its_neighbourhood_open() -> None:
    x = np.array([0.3, 0.2998, 0.302, 0.5], np.float16)
    reference, own = judged(SHRINK, "ascend950", {"lambd": 0.3}, gradOutput=np.ones(4, np.float16), self=x)
    assert own[0] == 0 != reference.golden[0]
    assert not reference.unspecified.any()
    assert undecided(reference).tolist() == [True, False, False, False]
    assert are_inside(own, reference)
    assert reference.bound[3] < 1e-3


def test_a_tie_that_no_right_kernel_rounds_on_its_way_has_one_answer() -> None:
    """This also holds if the output's type makes it a tie, or if another branch or another type's arithmetic rounds."""
    wide = np.full(2, 1 + 3 * 2.0**-11, np.float32)  # halfway between two numbers of float16
    softplus = ("aclnnSoftplusBackward", {"beta": 1.0, "threshold": 20.0})
    slope = (LEAKY, {"negativeSlope": 0.5, "selfIsResult": False})
    for (op, attributes), x in ((softplus, [24, 1]), ((SHRINK, {"lambd": 0.5}), [1, 0.25]), (slope, [-1, 2])):
        inputs = {"gradOutput": wide, "self": np.array(x, np.float32)}
        reference, _ = judged(op, "ascend910b", attributes, "float16", **inputs)
        assert reference.exact.tolist() == [True, op == LEAKY]  # the second results of the others are no ties
        assert reference.golden[0] == np.float16((1 + 2**-9) * (0.5 if op == LEAKY else 1))  # the even one
    subnormal = np.array([3 * 2.0**-24, 1], np.float16)  # times 0.5 a tie that float16's own arithmetic rounds
    for soc, exact in (("ascend950", True), ("ascend910b", False)):
        reference, _ = judged(LEAKY, soc, slope[1], gradOutput=subnormal, self=-subnormal)
        assert (reference.exact is not None and reference.exact[0]) == exact


def test_what_float16_arithmetic_loses_is_not_held_against_a_kernel_that_does_not_widen() -> None:
    x = np.linspace(-6, 6, 800).astype(np.float16)
    for soc, native in (("ascend950", False), ("ascend910b", True)):
        reference, own = judged("aclnnFastGeluBackward", soc, gradOutput=np.ones_like(x), self=x)
        apart = np.abs(own.astype(np.float64) - reference.value) > 2e-3 * np.abs(reference.value) + 1e-7
        assert apart.any() == native == undecided(reference).any()
        assert undecided(reference)[apart].all()
        assert undecided(reference).mean() < 0.5
        assert are_inside(own, reference)
        assert not reference.unspecified.any()


def test_what_follows_from_a_graph_is_kept_beside_that_of_all_others() -> None:
    schemes = [op.computes for op in OPERATORS.values() if is_elementwise(op.computes)]
    graphs = [graphs_with(scheme) for scheme in schemes]
    result = [(each.bound(FLOAT32), each.smooth(FLOAT32)) for each in graphs]
    assert len(graphs) > 9
    assert all(each.bound(FLOAT32) is lost for each, (lost, _) in zip(graphs, result, strict=True))
    assert all(each.smooth(FLOAT32) is smooth for each, (_, smooth) in zip(graphs, result, strict=True))
