"""Pages from outside: an unusable page is refused with a reason when the operator is registered."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from oracle.model.aclnn import PLATFORMS
from oracle.model.errors import OracleError
from oracle.numerics.expressions import exp, max_over, sum_over
from oracle.numerics.orders.formula import Form, Formula
from oracle.operators import OPERATORS, Aten, KernelName, Operator, Result
from oracle.operators.definition.checks import dtypes_in, not_null, same_shape
from oracle.operators.definition.page_checks import accepted
from oracle.operators.definition.parameters import axis, number, output, reduction, tensor
from oracle.operators.definition.roles import MAIN, MUTUAL, SAME

PARAMETERS = (tensor("gradOutput", "g", MUTUAL), tensor("self", "x", MAIN), output("gradInput"))
PAGE = replace(
    OPERATORS["aclnnSiluBackward"], name="aclnnOutsideBackward", parameters=PARAMETERS,
    computes=Formula(lambda g, x: g * exp(x)), empty=("self",), points={"x": (0.0,)}, aten=None, mindspore=None,
    origin="--operator outside:PAGE",
)  # fmt: skip


def formula(g, x):
    return g * exp(x)


def without_yield(a, platform):
    yield not_null(a, "self")
    same_shape(a, "gradOutput", "self")
    dtypes_in(a, ("self",), ("float32",))


def computes(*orders, **more):
    return {"computes": Formula(*orders, **more)}


def with_self(**changes):
    return {"parameters": (PARAMETERS[0], replace(PARAMETERS[1], **changes), PARAMETERS[2])}


def with_also(*more):
    return {"parameters": (*PARAMETERS, *more)}


def refusal(**changes):
    with pytest.raises(OracleError) as text:
        accepted(replace(PAGE, **changes))
    return str(text.value)


def test_a_page_that_works_is_taken():
    accepted(PAGE)


def test_a_page_that_names_no_socs_and_no_inputs_that_end_a_call_means_all() -> None:
    page = Operator("aclnnOutsideBackward", PARAMETERS, PAGE.checks, Formula(formula))
    assert set(page.documented) == set(PLATFORMS)
    assert [page.ends_early({"gradOutput": np.ones(n), "self": np.ones(m)}) for n, m in ((1, 1), (0, 1), (1, 0))] == [
        False, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_the_pages_of_this_package_are_taken(name):
    accepted(OPERATORS[name])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # fields of a wrong kind
        ({"undefined": "text"}, "undefined is 'text'; it must be a function, called as undefined(a)"),
        ({"mean": 3}, "mean is 3; it must be a function, called as mean(a)"),
        ({"scalars": lambda b, c: {}}, "(<lambda>), takes (b, c); it is called as scalars(a)"),
        ({"checks": lambda a: iter(())}, "(<lambda>), takes (a); it is called as checks(a, platform)"),
        ({"checks": without_yield}, "loses its answer; write yield before it; checks calls dtypes_in at test_"),
        ({"checks": without_yield}, "loses its answer; write yield from before it"),
        ({"kernel_type": lambda a: "float32"}, "takes (a); it is called as kernel_type(a, platform)"),
        ({"computes": formula}, "(formula); write Formula(formula)"),
        ({"computes": 3}, "computes is 3; it must be a Formula, or Given(function)"),
        (computes(3), "computes.formula is 3; it must be a function of symbols"),
        (computes(formula, unspecified=lambda x: x < 0), "it must be a mapping of conditions by the name of"),
        (computes(formula, {"950": 3}), "computes.orders['950'] is 3; it must be a function of"),
        (computes(formula, (formula,)), "computes.orders is (<function"),
        ({"further": {"gradWeight": 3}}, "further['gradWeight'] is 3; it must be a Result"),
        ({"further": {"gradWeight": Result(lambda: (), Formula(formula))}}, "further['gradWeight'].shape,"),
        ({"further": {"gradWeight": Result(len, Formula(formula), dtype="fp32")}}, "'fp32', which is no dtype"),
        ({"documented": "ascend910b"}, "documented is 'ascend910b'; it must be a tuple of SoCs, as ('ascend910b',)"),
        ({"empty": "self"}, "empty is 'self'; it must be a tuple of names, as ('self',)"),
        ({"points": {"x": 0.0}}, "points['x'] is 0.0; it must be a tuple of numbers, as (0.0,)"),
        ({"points": (0.0,)}, "points is (0.0,); it must be a mapping of values by symbol"),
        (with_also("out"), "parameters[3] is 'out'; it must be a parameter, as tensor(...) gives"),
        ({"kernel": "silu_grad"}, "kernel is 'silu_grad'; it must be a KernelName"),
        ({"kernel": KernelName("k", "self")}, "kernel.inputs is 'self'; it must be a tuple of names, as ('self',)"),
        ({"kernel": KernelName("k", ("self",), {"alpha": "alpha"})}, "be the aclnn attribute behind it and a value"),
        ({"aten": Aten(3)}, "aten.call is 3; it must be a function, called as call(aten, t)"),
        # names of what is not there
        ({"name": "OutsideBackward"}, "the name must begin with aclnn and a capital"),
        ({"parameters": PARAMETERS[:2]}, "it has no output"),
        (with_also(PARAMETERS[0]), "two parameters are called gradOutput"),
        (with_also(tensor("executor", "", MUTUAL)), "executor is the name of an out-parameter"),
        ({"parameters": (tensor("gradOutput", "g", MUTUAL), *PARAMETERS[2:])}, "no input has the role MAIN"),
        ({"empty": ("other",)}, "empty names other, which is no input"),
        (computes(lambda g, y: g * exp(y)), "its formula reads y, the symbol of no parameter; the symbols"),
        (computes(lambda g, y: g * exp(y)), "are g, x, and n is a mean's divisor"),
        (computes(lambda g, y: g * exp(y)), "no formula reads x, the symbol of self"),
        (computes(lambda g, x: g * x, {"950": Form(lambda g, z: g * z)}), "its orders['950'] reads z"),
        (computes(lambda g, x: g * x, unspecified={"tbe": lambda z: z < 0}), "its unspecified['tbe'] reads z"),
        (computes(lambda g: g), "no formula reads x, the symbol of self"),
        (computes(lambda g, x: (x > 0) & (g > 0)), "is a condition and no number: write where("),
        (computes(lambda g, x: g * (x > 0)), "(0 < x) is a condition and no number"),
        (computes(lambda g, x: g * x, unspecified={"": lambda x: abs(x)}), "is a number and no condition, as x > 3"),
        ({"points": {"z": (0.0,)}}, "points names z, the symbol of no parameter"),
        (computes(lambda g, x: g * np.exp(x)), "exp does not take the symbols of a formula; use exp of oracle.page"),
        (computes(lambda g, x: g * x, {"950": lambda g, x: g * np.sinh(x)}), "NumPy's sinh does not"),
        (computes(lambda g, x: g * x**2), "(<lambda>): fails on symbols at test_page_checks.py:"),
        (computes(lambda g, x: g * x**2), "; write x * x"),
        (computes(lambda g, x: g * sum_over(x)), "its formula sums along an axis and over names none"),
        ({"parameters": (tensor("gradOutput", "g", MAIN), *PARAMETERS[1:])}, "have the role MAIN; one input has it"),
        (with_self(optional=True), "self has the role MAIN, which gives the call its shape; it cannot be optional"),
        (with_self(parts=("a", "b")), "self has parts a, b along an axis, and no parameter is axis(...)"),
        (with_self(absent=5), "parameters[1].absent is 5; an absent operand counts as 0 or as 1"),
        ({"added": "fp32"}, "added is 'fp32', which is no float dtype"),
        (computes(lambda g, x: g * sum_over(x), over="gradInput"), "over names gradInput, which says no axes; it"),
        (with_self(symbol=3), "parameters[1].symbol is 3; it must be a text"),
        (with_self(dtype="float23"), "parameters[1].dtype is 'float23', which is no dtype (did you mean 'float32'?)"),
        ({"parameters": (tensor("gradOutput", "g", "SAME"), *PARAMETERS[1:])}, "the role of gradOutput is 'SAME'; it"),
        ({"documented": ("ascend910B",)}, "documented names ascend910B, which is no SoC (did you mean 'ascend910b'?)"),
        ({"changed": ("9.3",)}, "changed names 9.3, which is no version of CANN"),
        ({"like": "slef"}, "like names slef, which is no input (did you mean 'self'?)"),
        ({"kernel": KernelName("k", ("slef",))}, "kernel.inputs names slef, which is no input (did you mean 'self'?)"),
        ({"kernel": KernelName("k", ("self",), {"b": ("beta", 1)})}, "kernel.attributes names beta, which is no attr"),
        ({"aten": Aten(None, expanded=("grad",))}, "aten.expanded names grad, which is no input"),
        ({"aten": Aten(None, index_types=("int46",))}, "names int46, which is no dtype (did you mean 'int4"),
        (
            with_also(axis("dim")) | computes(lambda g, x: sum_over(g * x) + max_over(x), over="dim"),
            "its formula gives one value for each row, and gradInput has the shape of self; write shape=",
        ),
        (
            computes(lambda g, x: g * sum_over(x) if x > 0 else g, over="gradOutput"),
            "a formula cannot branch on (0 < x)",
        ),
        (computes(lambda g, x: g * sum_over(x), over="dimm"), "dimm, which is no parameter, and not all; there are: "),
        (with_also(output("gradWeight")), "its output gradWeight has no role, which says its shape"),
        ({"mean": lambda a: 3}, "it has a mean and no attribute reduction(...)"),
        ({"further": {"gradWeight": Result(lambda a: a["self"].shape, Formula(formula))}}, "first; there are: none"),
        (with_also(output("gradWeight", SAME)), "its output gradWeight has no Result in further"),
        (computes(formula, {"951": formula}), "orders['951']: no SoC's kernel has the name '951' (did"),
        (computes(formula, {"tbe_a5": formula}), "no SoC's kernel has the name 'tbe_a5' (did you mean"),
        (computes(formula, {"950@9.3": formula}), "orders['950@9.3']: '9.3' is no version of CANN"),
        (computes(formula, unspecified={"970": lambda x: x < 0}), "kernel has the name '970' (did you mean '950'?)"),
        (computes(formula, unspecified={"tbe flaot16": lambda x: x < 0}), "is no dtype (did you mean 'float16'?)"),
        ({"scalars": lambda a: {"c": 2.0}}, "scalars makes c, which no formula reads"),
        (with_also(number("alpha", "alpha")) | computes(lambda g, x, alpha: g * exp(x)), "alpha and never uses it"),
        (with_also(number("alpha", "", plain="1.5")), "plain of alpha is '1.5'; it must be a number, as plain=1.0"),
        (with_also(number("alpha", "", plain=math.nan)), "plain of alpha is nan; it must be a finite number"),
        (with_also(number("alpha", "alpha")), "no formula reads alpha, the symbol of alpha"),
        (with_also(number("alpha", "x")), "self and alpha have the symbol x; a formula could not tell them apart"),
        (with_also(number("alpha", "", c="float64")), "c of alpha is 'float64'; a number has the C type aclScalar, f"),
        (with_also(number("größe", "")), "'größe' is no name of a C parameter"),
        ({"name": "aclnnGrößeBackward"}, "the name must begin with aclnn and a capital"),
        (computes(lambda g, x: g * x * math.inf), "a constant of a formula is a real number, and inf is none"),
        (computes(lambda g, x: g * (x // 2)), "a formula is made of arithmetic, comparisons, abs, and the functions"),
    ],
)
def test_a_page_with_a_wrong_field_or_name_is_refused(changes, message):
    text = refusal(**changes)
    assert text.startswith(f"operator {changes.get('name', PAGE.name)} of --operator outside:PAGE: ")
    assert message in text


def test_every_problem_is_told_at_once():
    text = refusal(documented=("ascend910B",), empty=("other",), points={"z": (0.0,)})
    assert all(word in text for word in ("ascend910B", "other", "points names z"))


def test_an_order_of_another_name_is_one_that_a_right_kernel_may_have():
    accepted(replace(PAGE, computes=Formula(formula, {"950": formula, "gradient_first": Form(formula)})))


def test_a_mean_beside_a_reduction_is_taken():
    page = replace(PAGE, parameters=(PARAMETERS[0], PARAMETERS[1], reduction("reduction"), PARAMETERS[2]))
    accepted(replace(page, mean=lambda a: a["self"].size))
