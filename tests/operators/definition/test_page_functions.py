"""Functions of a page from outside: a fault gives one message with the operator, the field and the line.

Each row is a page with one wrong function. Most are reported when the operator is registered.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from oracle.model.errors import OracleError
from oracle.numerics.expressions import exp, max_over, sqrt, sum_over, where
from oracle.numerics.orders.formula import Form, Formula
from oracle.operators import OPERATORS, Operator, Result
from oracle.operators.definition.checks import check, dtype_in, not_null, promotes, same_dtype, scalar_in
from oracle.operators.definition.page_checks import accepted
from oracle.operators.definition.parameters import axis, number, output, reduction, tensor
from oracle.operators.definition.roles import MAIN, MUTUAL, PER_CHANNEL, SAME

NAME = "aclnnOutsideBackward"
HAS = "it has: gradOutput, self, weight, alpha, reduction, gradInput"


def checks(a, platform):
    yield not_null(a, "gradOutput", "self")
    yield dtype_in(a, "self", ("float32", "float16"))


PAGE = replace(
    OPERATORS["aclnnSiluBackward"],
    name=NAME,
    parameters=(
        tensor("gradOutput", "g", MUTUAL), tensor("self", "x", MAIN), tensor("weight", "w", SAME, optional=True),
        number("alpha", "alpha"), reduction("reduction"), output("gradInput"),
    ),
    computes=Formula(lambda g, x, w, c: g * exp(x) * w * c),
    scalars=lambda a: {"c": a["alpha"] * 2},
    checks=checks,
    demands=None,
    empty=("self",),
    points={"x": (0.0,)},
    kernel=None,
    aten=None,
    mindspore=None,
    origin="--operator outside:PAGE",
)  # fmt: skip


def ending(a, platform):
    return not_null(a, "self")
    yield


def yielding(*made):
    """Return checks that yield those of the page, and one more."""

    def wrong(a, platform):
        yield from checks(a, platform)
        for each in made:
            yield each(a)

    return wrong


def refusal(**changes):
    with pytest.raises(OracleError) as text:
        accepted(replace(PAGE, **changes))
    return str(text.value)


def test_functions_that_work_are_taken():
    accepted(PAGE)


@pytest.mark.parametrize("field", ["mean", "undefined", "shape", "terms", "kept", "scalars"])
def test_a_name_that_is_no_parameter_is_told_with_the_field(field):
    text = refusal(**{field: lambda a: a["alhpa"]})
    asks = "ask" if field in ("terms", "scalars") else "asks"
    assert f"its {field} {asks} for 'alhpa', which is no parameter of it (did you mean 'alpha'?); {HAS}" in text
    assert text.startswith((NAME, f"operator {NAME}"))


FURTHER = {"gradWeight": Result(lambda a: a["self"].shape, PAGE.computes, terms=lambda a: a["slef"].shape)}


def asking(check_of):
    return {"checks": yielding(check_of)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernel_type": lambda a, platform: a["slef"].dtype}, "kernel_type asks for 'slef', which is no parameter"),
        ({"demands": lambda a, platform: iter([not_null(a, "slef")])}, "its demands ask for 'slef', which is no par"),
        (asking(lambda a: not_null(a, "wieght")), "its checks ask for 'wieght', which is no parameter"),
        ({"mean": lambda a: a.get("alhpa", 1)}, "its mean asks for 'alhpa', which is no parameter of it"),
        ({"mean": lambda a: a["gradInput"].size}, "its mean asks for 'gradInput', which is not known yet when it is"),
        (
            {"parameters": (*PAGE.parameters, output("gradWeight", SAME)), "further": FURTHER},
            "its further['gradWeight'].terms ask for 'slef', which is no parameter of it (did you mean 'self'?)",
        ),
        # answers that are none
        ({"scalars": lambda a: (2.0,)}, "gave (2.0,); it must give numbers by symbol, as {'c': 2.0}"),
        ({"scalars": lambda a: {"c": "2"}}, "gave {'c': '2'}; it must give numbers by symbol"),
        ({"undefined": lambda a: True}, "gave True; it must give None, or the reason as a text"),
        ({"shape": lambda a: 3}, "gave 3; it must give a tuple of lengths"),
        ({"terms": lambda a: [3]}, "gave [3]; it must give a tuple of lengths"),
        ({"kept": lambda a: (2.5,)}, "gave (2.5,); it must give a tuple of lengths"),
        ({"kernel_type": lambda a, platform: "flaot32"}, "gave 'flaot32'; it must give the name of a dtype"),
        ({"mean": lambda a: 1 // 0}, "its mean failed at test_page_functions.py:"),
        ({"mean": lambda a: 1 // 0}, "ZeroDivisionError: "),
        ({"shape": lambda a: (a["self"].shape[7],)}, "tuple index out of range; the call: "),
        ({"shape": lambda a: (a["self"].shape[7],)}, "self ["),
        ({"shape": lambda a: (a["self"].shape[7],)}, "; a shape is also asked of calls that the checks refuse"),
        # dtypes that are none
        (asking(lambda a: dtype_in(a, "self", "float32")), "which is a text; it must be a tuple of dtypes, as ('float"),
        (
            asking(lambda a: dtype_in(a, "self", ("flaot32",))),
            f"{NAME}: its checks ask whether the dtype of self is in "
            "('flaot32',): 'flaot32' is no dtype (did you mean 'float32'?)",
        ),
        (
            asking(lambda a: promotes(a, ("self", "gradOutput"), "float32")),
            "the dtype of self and gradOutput is in 'float",
        ),
        (
            asking(lambda a: scalar_in(a, "alpha", ("flaot64",))),
            "the dtype of alpha is in ('flaot64',): 'flaot64' is no d",
        ),
    ],
)
def test_what_a_function_asks_for_or_gives_wrongly_is_told(changes, message):
    assert message in refusal(**changes)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, None, True, "3"])
def test_a_mean_that_is_no_count_is_told(wrong):
    text = refusal(mean=lambda a: wrong)
    assert re.search(
        rf"its mean, test_page_functions.py:\d+ \(<lambda>\), gave {re.escape(repr(wrong))}; it must", text
    )
    assert "a whole number above 0" in text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda a, platform: None, "gave None; it must be a generator: write yield before every check"),
        (lambda a, platform: not_null(a, "self"), "it must be a generator: write yield before every check"),
        (
            yielding(lambda a: True),
            r"checks yielded True at test_page_functions.py:\d+, .* yield a check of oracle.page",
        ),
        (ending, r"its checks, .*, returned .* and ended: write yield instead of return"),
        (yielding(lambda a: None), r"its checks yielded None at test_page_functions.py:\d+, which is no check"),
        (
            yielding(lambda a: same_dtype(a, "weight", "self")),
            r"its checks failed at test_page_functions.py:\d+ \(.*same_dtype.*\): AttributeError: 'NoneType' object "
            r"has no attribute 'dtype'; None, a null pointer, in this call: weight; yield not_null\(...\) before",
        ),
        (
            yielding(lambda a: check("rank", a["self"].rank > 0)),
            r"its checks failed at test_page_functions.py:\d+ .*: the problem of check 'rank' is (True|False); it must "
            r"be None if the call passes, else a text",
        ),
        (yielding(lambda a: a.nothing), r"its checks failed at test_page_functions.py:\d+ .*AttributeError: "),
    ],
)
def test_checks_that_are_none_are_told_with_the_line(wrong, message):
    assert re.search(message, refusal(checks=wrong))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda a: same_dtype(a, "self", "gradOutput"), r"at .*'NoneType'.*in this call: gradOutput; yield not_null"),
        (lambda a: not_null(a, "self"), r"gradOutput is a null pointer: let them yield not_null\(a, 'gradOutput'\)"),
    ],
)
def test_checks_that_let_an_input_be_a_null_pointer_are_told(made, message):
    assert re.search(message, refusal(checks=lambda a, platform: iter([made(a)])))


def test_a_reduction_that_the_checks_refuse_whatever_the_call_is_told():
    """Its cases would be omitted silently: the page's shape and its checks do not agree."""

    def scalar_under_a_reduction(a, platform):
        yield not_null(a, "self", "gradOutput")
        wanted = () if a["reduction"] else a["self"].shape
        yield check("shape", None if a["gradInput"].shape == wanted else f"gradInput must be {wanted}")

    page = replace(PAGE, checks=scalar_under_a_reduction)
    message = re.escape("with reduction 1, and take 0: gradInput must be (). Cases have outputs of the shapes")
    with pytest.raises(OracleError, match=message):
        accepted(page)
    page = replace(page, shape=lambda a: () if a["reduction"] else tuple(a["self"].shape))
    assert accepted(replace(page, terms=lambda a: tuple(a["self"].shape)))
    text = "with reduction 1 its output gradInput has the shape () and self, which its formula reads, (4, 5); say that"
    with pytest.raises(OracleError, match=re.escape(text)):
        accepted(page)


def test_each_check_has_a_name_of_its_own():
    """The score leaves out the checks of one name at a time."""
    shape, again = (lambda a: check("shape", None) for _ in range(2))
    assert "checks 3 and 4 that it yields have the name 'shape'; give" in refusal(checks=yielding(shape, again))
    accepted(replace(PAGE, checks=yielding(shape, lambda a: not_null(a, "self"))))


def test_checks_that_fail_at_a_null_attribute_are_told():
    """The catalogue has a case for every null pointer; for this one it would have none."""
    text = r"its checks failed at .*: TypeError: .*; None, a null pointer, in this call: .*alpha"
    with pytest.raises(OracleError, match=text):
        accepted(replace(PAGE, checks=yielding(lambda a: check("alpha", None if a["alpha"] > 0 else "no"))))


def test_an_order_computes_the_formula_or_says_that_it_departs():
    def formula(g, x, w, c):
        return where(x > 0, g * x, g) * w * c

    def wrong(g, x, w, c):
        return where(x > 0, g * x, g * 2) * w * c

    assert "its formula gives no number at usual points: -inf at g=" in refusal(
        computes=Formula(lambda g, x, w, c: g * x * w / (c - c))
    )
    assert "its formula has no value anywhere: sqrt of " in refusal(
        computes=Formula(lambda g, x, w, c: g * x * w * c * sqrt(-1))
    )
    text = refusal(computes=Formula(formula, {"950": formula, "tbe": wrong}))
    assert re.search(r"orders\['tbe'\] computes \S+ where the formula computes \S+, at g=\S+, x=-", text)
    accepted(replace(PAGE, computes=Formula(formula, {"950": formula, "tbe": Form(wrong, departs=True)})))


def of_channels(a, platform):
    yield not_null(a, "dy", "x", "weight")
    yield check("channels", None if a["x"].rank >= 2 else "x has no channels")


SCALE = Operator(
    "aclnnOutsideScaleGrad",
    (tensor("dy", "g", SAME), tensor("x", "x", MAIN), tensor("weight", "w", PER_CHANNEL), output("dx"),
     output("dw", PER_CHANNEL)),
    of_channels,
    Formula(lambda g, w: g * w),
    further={"dw": Result(lambda a: a["weight"].shape, Formula(lambda g, x: sum_over(g * x), over="all but weight"))},
    origin="--operator outside:SCALE",
)  # fmt: skip


def with_gradient(*orders, over="all but weight"):
    """Return the page with another formula for the sum over the batch."""
    return replace(SCALE, further={"dw": Result(lambda a: a["weight"].shape, Formula(*orders, over=over))})


def _sum(g, x):
    return sum_over(g * x)


def _sum_of_squares(g, x):
    return sum_over(g * x * x)


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (with_gradient(lambda g, x: g * x), "gives another value for each element of a row; write sum_over(...)"),
        (with_gradient(lambda g, x: sum_over(g) * x), "gives another value for each element of a row"),
        (with_gradient(_sum, over="weight"), "dw has the shape (5,), and the rows of over='weight' the shape (4,)"),
        (with_gradient(_sum, {"tbe": _sum_of_squares}), "orders['tbe'] computes"),
    ],
)
def test_a_formula_with_reductions_fits_its_output_and_its_orders(page, message):
    """The golden would be that of a row's first element, or no golden."""
    accepted(SCALE)
    accepted(with_gradient(_sum, {"tbe": Form(_sum_of_squares, departs=True)}))
    with pytest.raises(OracleError, match=f"aclnnOutsideScaleGrad: .*{re.escape(message)}"):
        accepted(page)


def _whole(a):
    return tuple(a["x"].shape)


def _kept(a):
    return tuple(n if k == 1 else 1 for k, n in enumerate(a["x"].shape))


@pytest.mark.parametrize(
    ("sums", "message"),
    [
        ({}, "its output dw has the shape (5,) and x, which its formula reads, (4, 5); say that values are summed"),
        ({"kept": _kept}, 'say that values are summed: terms=lambda a: tuple(a["x"].shape)'),
        ({"terms": _whole}, "its formula (2, 4, 6) values, which cannot be summed to (1, 1, 4); kept says this shape"),
        ({"terms": _whole, "kept": lambda a: (1,) * a["x"].ndim}, "which cannot be summed to (1, 1)"),
    ],
)
def test_values_of_a_formula_without_reductions_can_be_summed_to_its_output(sums, message):
    """The golden would be that of the first elements, or no golden."""

    def page(**sums):
        return replace(SCALE, further={"dw": Result(lambda a: a["weight"].shape, Formula(lambda g, x: g * x), **sums)})

    accepted(page(terms=_whole, kept=_kept))
    with pytest.raises(OracleError, match=f"aclnnOutsideScaleGrad: .*{re.escape(message)}"):
        accepted(page(**sums))


def test_checks_that_refuse_all_calls_but_a_scalar_are_no_fault_of_this_package():
    """The checks want one value for each row, and `shape` gives the whole shape: the cases say what they refuse."""

    def one_per_row(a, platform):
        yield not_null(a, "x", "m")
        yield check("shape of m", None if a["m"].shape == a["x"].shape[:-1] else "m has another shape")

    biggest = Formula(lambda x: max_over(x), over="dim")
    parameters = (tensor("x", "x", MAIN), axis("dim"), output("m"))
    accepted(Operator("aclnnOutsideMost", parameters, one_per_row, biggest, shape=_whole, origin="--operator o:MOST"))
