"""Norms: groups are rows, statistics and gradients may have any shape, and a mask selects the written outputs."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import oracle
from oracle.case.judge import judge
from oracle.case.prepare import Prepared
from oracle.catalogue.data.case import Case, TensorPlan
from oracle.model.call import Call
from oracle.operators.answers.api import compute, references, written
from oracle.settings.settings import Settings
from oracle.verdict import compare, strict

SHAPE, GROUP = (3, 6, 5, 2), 2
SIZES = {"N": 3, "C": 6, "HxW": 10, "group": GROUP}
ROWS = (3 * GROUP, 30)
ALL = (True, True, True)


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(list(shape)).normal(1, 2, shape).astype(np.float32)


def test_a_group_is_a_row_of_layer_norm():
    x = drawn(*SHAPE)
    groups = oracle.golden("aclnnGroupNorm", self=x, eps=1e-5, **SIZES)
    rows = oracle.golden("aclnnLayerNorm", input=x.reshape(ROWS), normalizedShape=ROWS[1:], eps=1e-5)
    for one, other in zip(groups.values(), rows.values(), strict=True):
        np.testing.assert_array_equal(one.ravel(), other.ravel())


def test_the_gradient_of_a_group_is_that_of_a_row():
    g, x, m, r = drawn(*SHAPE), drawn(*SHAPE) + 1, drawn(3, GROUP), drawn(3, GROUP) + 2
    groups = oracle.golden(
        "aclnnGroupNormBackward", gradOut=g, input=x, mean=m, rstd=r, outputMask=(True, False, False), **SIZES
    )
    rows = oracle.golden(
        "aclnnLayerNormBackward", gradOut=g.reshape(ROWS), input=x.reshape(ROWS), normalizedShape=ROWS[1:],
        mean=m.ravel(), rstd=r.ravel(), outputMask=(True, False, False),
    )  # fmt: skip
    assert list(groups) == ["gradInput"]
    np.testing.assert_array_equal(groups["gradInput"].ravel(), rows["gradInputOut"].ravel())


@pytest.mark.parametrize("shape", [(6,), (6, 1), (2, 3), (1, 6)])
def test_one_value_per_row_may_have_any_shape(shape):
    x = drawn(3, 2, 7)
    given = {"gradOut": x, "input": x, "normalizedShape": (7,), "outputMask": ALL}
    m, r = drawn(6), drawn(6) + 2
    plain = oracle.golden("aclnnLayerNormBackward", mean=m.reshape(3, 2), rstd=r.reshape(3, 2), **given)
    other = oracle.golden("aclnnLayerNormBackward", mean=m.reshape(shape), rstd=r.reshape(shape), **given)
    for name, values in plain.items():
        np.testing.assert_array_equal(values, other[name])


def case(mask: tuple[bool, ...], *, null: str = "") -> Case:
    data = {"gen": "normal", "mean": 0.0, "std": 1.0}
    shapes = {"gradOut": (4, 5), "input": (4, 5), "mean": (4,), "rstd": (4,), "weightOptional": (5,)}
    inputs: dict[str, Any] = {name: TensorPlan(shape, "float32", data) for name, shape in shapes.items()}
    outputs = {"gradInputOut": (4, 5), "gradWeightOut": (5,), "gradBiasOut": (5,)}
    return Case(
        id="a/mask", op="aclnnLayerNormBackward", family="", why="", tier="full", dtype="float32",
        inputs={**inputs, "biasOptional": None}, attrs={"normalizedShape": (5,), "outputMask": mask},
        outputs={name: None if name == null else TensorPlan(shape, "float32") for name, shape in outputs.items()},
    )  # fmt: skip


@pytest.mark.parametrize("null", ["", "gradWeightOut"])
def test_an_output_that_is_not_asked_for_is_left_as_it_is(null):
    from oracle.backends.cpu import Backend
    from oracle.case.execute import Stopwatch, execute

    prepared = Prepared.make(case((True, False, True), null=null), Settings())
    assert written(prepared.memory.call) == ("gradInputOut", "gradBiasOut") == tuple(prepared.values)
    execution = execute(prepared, Backend(), Stopwatch())
    assert all(layer.passed for layer in judge(prepared, execution).layers.values())
    if not null:
        prepared.memory.call.outputs["gradWeightOut"][2] = 1.0
        structure = judge(prepared, execution).layers["structure"]
        assert not structure.passed
        assert structure.reason == "gradWeightOut was written"


@pytest.mark.parametrize(
    ("mask", "null", "status"),
    [
        (None, "", "ACLNN_ERR_PARAM_NULLPTR"),
        ((True, True), "", "ACLNN_ERR_PARAM_INVALID"),
        (ALL, "gradBiasOut", "ACLNN_ERR_PARAM_NULLPTR"),
        ((True, True, False), "gradBiasOut", "ACLNN_SUCCESS"),
        ((False, False, False), "gradInputOut", "ACLNN_SUCCESS"),
    ],
)
def test_a_mask_says_which_outputs_must_be_there(mask, null, status):
    x, one = drawn(4, 5), drawn(5)
    outputs = {"gradInputOut": x, "gradWeightOut": one, "gradBiasOut": one}
    answer = oracle.validate(
        "aclnnLayerNormBackward", gradOut=x, input=x, normalizedShape=(5,), mean=drawn(4), rstd=drawn(4),
        outputMask=mask, **{name: None if name == null else value for name, value in outputs.items()},
    )  # fmt: skip
    assert answer.name == status


def test_lists_are_what_tuples_are():
    x, one = drawn(4, 5), drawn(4, 1)
    given = {"gradOut": x, "input": x, "mean": one, "rstd": one}
    for ask in (oracle.golden, oracle.reference):
        lists, tuples = (
            ask("aclnnLayerNormBackward", **given, normalizedShape=kind((5,)), outputMask=kind((True,) * 3))
            for kind in (list, tuple)
        )
        assert [str(lists[name]) for name in tuples] == [str(tuples[name]) for name in tuples]


def test_an_output_of_no_elements_is_right_whatever_the_inputs_are():
    inputs = {"dy": drawn(2, 3), "x": np.zeros(0, np.float32), "rstd": drawn(1), "gamma": np.zeros((0, 4), np.float32)}
    outputs = {"dxOut": np.zeros(0, np.float32), "dgammaOut": np.zeros((0, 4), np.float32)}
    call = Call("aclnnRmsNormGrad", "ascend950", inputs, {}, outputs)
    assert oracle.validate(call).ok
    for name, golden in oracle.golden(call).items():
        assert golden.shape == compute(call, output=name).shape == references(call)[name].golden.shape


F, H = np.float32, np.float16


@pytest.mark.parametrize(
    ("op", "arguments", "value"),
    [
        (
            "aclnnLayerNorm",
            {"input": np.array([[3, -3]], F), "normalizedShape": (2,), "weightOptional": np.array([5, 5], F),
             "biasOptional": np.array([2.0**-23, 0], F), "eps": 16.0},
            3,
        ),
        ("aclnnRmsNorm", {"x": np.array([[3.0]], H), "gamma": np.array([1 + 2.0**-11], H), "epsilon": 0.0}, 1),
        (
            "aclnnGroupNorm",
            {"self": np.array([[0.75, -0.75]], H), "gamma": np.array([5, 5], H), "beta": np.array([2.0**-10, 0], H),
             "N": 1, "C": 2, "HxW": 1, "group": 1, "eps": 1.0},
            3,
        ),
    ],
)  # fmt: skip
def test_a_tie_behind_a_root_that_is_a_number_goes_to_the_even_one(op, arguments, value):
    """For example, 1 / sqrt(25) is no float64 number: no enclosure shows the tie."""
    assert float(next(iter(oracle.golden(op, **arguments).values())).flat[0]) == value


@pytest.mark.parametrize("mask", list(product((False, True), repeat=3)))
def test_a_verdict_needs_the_asked_gradients_alone(mask):
    arguments = {"gradOut": np.ones((3, 4), F), "input": np.ones((3, 4), F), "normalizedShape": (4,)}
    arguments |= {"mean": np.ones((3, 1), F), "rstd": np.ones((3, 1), F), "outputMask": mask}
    assert len(oracle.reference("aclnnLayerNormBackward", **arguments)) == sum(mask)


def test_a_kernel_may_multiply_gradient_and_gamma_first():
    """Their product is subnormal in float32: 1 % is lost."""
    arguments = {"gradOut": np.array([[1e-20, 3e-20]], F), "input": np.array([[1, -1]], F)}
    arguments |= {"mean": np.zeros((1, 1), F), "rstd": np.array([[1e8]], F), "gamma": np.array([1e-22] * 2, F)}
    sizes = {"N": 1, "C": 2, "HxW": 1, "group": 1, "outputMask": (True, True, True)}
    reference = oracle.reference("aclnnGroupNormBackward", **arguments, **sizes)["gradInput"]
    h, z = (arguments["gradOut"] * arguments["gamma"])[0], np.array([1, -1], F) * F(1e8)
    kernel = (h - h.mean() - z * (h * z).mean()) * F(1e8)
    assert (np.abs(kernel - reference.value) <= reference.bound).all()


def in_sequence(terms: np.ndarray) -> np.ndarray:
    return np.add.accumulate(terms, axis=-1, dtype=F)[..., -1]


@pytest.mark.parametrize("gradient", [np.full(300, 1.1, F), drawn(60).astype(H)], ids=["float32", "float16"])
def test_ascend950_sums_the_gradient_and_its_product_with_input_apart(gradient):
    """gradGamma is (sum(input * gradOut) - sum(gradOut) * mean) * rstd. Both sums are rounded, also where input is mean
    and every exact term is 0."""
    kind, length = gradient.dtype, gradient.size
    x, r = np.full(length, 0.8613, kind), np.full((1, 1), 316, kind)
    arguments = {"gradOut": gradient.reshape(1, 1, length), "input": x.reshape(1, 1, length), "rstd": r}
    arguments |= {"mean": x[:1].reshape(1, 1), "gamma": np.ones(1, kind), "N": 1, "C": 1, "HxW": length, "group": 1}
    reference = oracle.reference("aclnnGroupNormBackward", soc="ascend950", outputMask=ALL, **arguments)["gradGammaOut"]
    product, total = in_sequence(x.astype(F) * gradient.astype(F)), in_sequence(gradient.astype(F))
    actual = ((product - total * F(x[0])) * F(r[0, 0])).astype(kind).reshape(1)
    assert abs(actual[0]) > 1e-4
    assert strict(compare(reference, actual), actual.shape).passed


@pytest.mark.parametrize("statistic", ["mean", "rstd"])
def test_ascend950_multiplies_a_sum_by_an_infinite_statistic(statistic):
    """The sum of gradOut * inf is NaN for gradients of both signs; the sum of gradOut, times inf, is an infinity."""
    arguments = {"gradOut": np.array([[[1, -2]]], F), "input": np.array([[[3, 1]]], F), "gamma": np.ones(1, F)}
    arguments |= {"mean": np.ones((1, 1), F), "rstd": np.ones((1, 1), F), "N": 1, "C": 1, "HxW": 2, "group": 1}
    arguments[statistic] = np.full((1, 1), np.inf, F)
    for soc, unknown in (("ascend950", True), ("ascend910b", False)):
        reference = oracle.reference("aclnnGroupNormBackward", soc=soc, outputMask=ALL, **arguments)["gradGammaOut"]
        assert np.isnan(reference.golden).all()
        assert reference.unspecified.tolist() == [unknown], soc


@pytest.mark.parametrize("soc", ["ascend910b", "ascend950"])
@pytest.mark.parametrize(("special", "unknown"), [(np.inf, True), (np.nan, False)])
def test_an_infinite_gamma_multiplies_the_sum_of_a_channel(soc, special, unknown):
    """As above, in gradInput. With NaN every kernel gives NaN."""
    arguments = {"gradOut": np.array([[[1, -2], [1, 1]]], F), "input": np.array([[[3, 1], [2, 5]]], F)}
    arguments |= {"gamma": np.array([special, 1], F), "mean": np.zeros((1, 1), F), "rstd": np.ones((1, 1), F)}
    sizes = {"N": 1, "C": 2, "HxW": 2, "group": 1, "outputMask": ALL}
    reference = oracle.reference("aclnnGroupNormBackward", soc=soc, **arguments, **sizes)["gradInput"]
    assert np.isnan(reference.golden).all()
    assert (reference.unspecified == unknown).all()


def test_the_mean_of_a_group_with_an_infinity_is_unspecified():
    sizes = {"N": 1, "C": 4, "HxW": 1, "group": 1, "eps": 1e-5}
    assert oracle.reference("aclnnGroupNorm", self=np.array([[np.inf, 1, 2, 3]], F), **sizes)["meanOut"].unspecified


def test_ascend910_squares_rstd_and_a_square_below_float32_gives_no_gradient():
    """1 / rstd^2 overflows in float32 and its root has the reciprocal 0; the formula has 1e-20 for each sample."""
    arguments = {"gradOut": np.ones((4, 1, 1), F), "input": np.ones((4, 1, 1), F), "gamma": np.ones(1, F)}
    arguments |= {"mean": np.zeros((4, 1), F), "rstd": np.full((4, 1), 1e-20, F), "N": 4, "C": 1, "HxW": 1, "group": 1}
    for soc, unknown in (("ascend910", True), ("ascend910b", False)):
        reference = oracle.reference("aclnnGroupNormBackward", soc=soc, outputMask=ALL, **arguments)["gradGammaOut"]
        assert reference.golden.tolist() == [F(4e-20)]
        assert reference.unspecified.tolist() == [unknown], soc
