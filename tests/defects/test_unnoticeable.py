"""The mutants that no verdict can notice, as far as a rule finds them."""

from __future__ import annotations

import pytest
from ordinary import in_full_alone

from oracle.defects import registry
from oracle.defects.one_change import numerics
from oracle.defects.registry import why_unnoticeable
from oracle.defects.sizes import lost_parts
from oracle.numerics.expressions import max_over
from oracle.numerics.orders.formula import Formula
from oracle.operators import OPERATORS, Operator, Result
from oracle.operators.answers.registry import operator_named
from oracle.operators.definition.checks import check, same_shape
from oracle.operators.definition.parameters import axis, output, tensor
from oracle.operators.definition.roles import MAIN, ROWS

pytestmark = pytest.mark.slow


def hidden(slug: str) -> dict[str, bool]:
    """Return, by the end of its id, whether each numeric mutant of an operator is hidden."""
    op = operator_named(slug)
    kinds = ("in float16", "truncate", "no rounding", "'s type", "inf as largest")
    result = [d for d in numerics.mutants(op) if d.id.endswith(kinds)]
    return {d.id.split("/", 2)[-1]: bool(d.equivalent or why_unnoticeable(op, d)) for d in result}


def test_a_store_that_cuts_digits_off_is_hidden_where_the_gradient_itself_is_stored_in_its_type():
    for name, expected in (("threshold", True), ("hardshrink", False), ("tanh", False)):
        assert hidden(f"{name}_backward")["truncate"] is expected, name


def test_the_hosts_rounding_is_hidden_where_it_rounds_nothing_or_to_the_outputs_type():
    shrink, gelu, leaky = map(hidden, ("hardshrink_backward", "gelu_backward_v2", "leaky_relu_backward"))
    assert shrink["no rounding"]
    assert shrink["gradInput's type"]
    assert gelu["gradInput's type"]
    assert not leaky["no rounding"]
    assert not leaky["out's type"]


def test_computing_float16_in_it_is_wrong_where_a_public_kernel_widens():
    def only(slug: str):
        return next(d for d in numerics.mutants(operator_named(slug)) if d.id.endswith("float16 in float16"))

    assert only("threshold_backward").soc() == "ascend950"
    assert only("tanh_backward").soc() == "ascend910b"
    assert not only("hardshrink_backward").equivalent  # with mixed types it is not equivalent


def test_an_infinity_read_as_the_largest_number_is_hidden_where_some_right_kernel_answers_so():
    assert hidden("gelu_backward_v2")["self inf as largest"]
    assert not hidden("gelu_backward_v2")["gradOutput inf as largest"]


def test_a_flushed_gradient_is_seen_where_a_factor_makes_zero_of_the_smallest_one_anyway():
    found = registry.defects("aclnnHardsigmoidBackward")
    (flushed,) = [d for d in found if d.id.endswith("gradOutput flushed")]
    assert not flushed.equivalent


def equivalents(name: str) -> dict[str, bool]:
    """Return, by the end of its id, whether each wrong kernel of an operator is equivalent."""
    return {d.id.split("/", 2)[-1]: bool(d.equivalent) for d in registry.defects(name)}


@in_full_alone
def test_nothing_is_rounded_where_one_of_the_operands_is_the_result():
    relu = equivalents("aclnnRelu")
    assert [relu[kind] for kind in ("half away", "upwards", "float16 in float16", "bfloat16 in bfloat16")] == [True] * 4
    assert not relu["float32 in float16"]  # it loses digits of the operand
    assert not equivalents("aclnnHardtanh")["half away"]  # a limit may lie between two numbers of 16 bits


def test_a_lost_nan_is_hidden_where_every_nan_is_unspecified():
    limits = equivalents("aclnnHardtanh")
    assert [limits[f"float16 {what}"] for what in ("nan to zero", "nan to inf")] == [True, True]
    assert not limits["float16 inf to largest"]
    assert not equivalents("aclnnSilu")["float16 nan to zero"]


def test_a_clamp_is_lost_only_where_kernels_have_it():
    clamped = {op.slug for op in OPERATORS.values() if any("/clamp" in d.id for d in lost_parts.mutants(op))}
    expected = {"celu", "hardsigmoid", "hardswish", "log_sigmoid", "log_sigmoid_forward", "relu"}
    assert clamped == expected | {"binary_cross_entropy_backward"}


def test_the_last_axis_of_an_output_is_long_where_another_axis_is_reduced(monkeypatch: pytest.MonkeyPatch):
    """The output has length 1 along the reduced axis, which is the last one only by default."""

    def rows(a):
        return tuple(1 if k == a["dim"] % len(a["x"].shape) else n for k, n in enumerate(a["x"].shape))

    def checks(a, platform):
        yield same_shape(a, "y", "x")
        yield check("shape of most", None if a["most"].shape == rows(a) else "most has another shape")

    parameters = (tensor("x", "x", MAIN), axis("dim"), output("y"), output("most", ROWS))
    most = Result(rows, Formula(max_over, over="dim"))
    page = Operator(
        "aclnnOutsideMost",
        parameters,
        checks,
        Formula(lambda x: x),
        further={"most": most},
    )
    monkeypatch.setitem(OPERATORS._found, page.name, page)
    columns = [d for d in registry.defects(page.name) if "/columns beyond" in d.id and d.id.endswith(" of most")]
    assert columns
    assert not any(d.equivalent.startswith("the last axis") for d in columns)
