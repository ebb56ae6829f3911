"""Pages from outside: what cannot work is refused with what is wrong, before a case is run."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from oracle.model.errors import OracleError
from oracle.numerics.expressions import exp
from oracle.numerics.graphs import Elementwise, Form
from oracle.operators import OPERATORS
from oracle.operators.parameters import MAIN, MUTUAL, output, tensor
from oracle.operators.registry import Registry, operator_named

PARAMETERS = (tensor("gradOutput", "g", MUTUAL), tensor("self", "x", MAIN), output("gradInput"))
PAGE = replace(
    OPERATORS["aclnnSigmoidBackward"],
    name="aclnnOutsideBackward",
    parameters=PARAMETERS,
    computes=Elementwise(lambda g, x: g * exp(x)),
    empty=("self",),
    points={"x": (0.0,)},
    origin="--operator outside:PAGE",
)


def refusal(**changes):
    with pytest.raises(OracleError) as told:
        Registry()._add(replace(PAGE, **changes))
    return str(told.value)


def test_a_page_that_works_is_taken():
    Registry()._add(PAGE)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"name": "OutsideBackward"}, "the name must begin with aclnn and a capital"),
        ({"parameters": PARAMETERS[:2]}, "it has no output"),
        ({"parameters": (*PARAMETERS, PARAMETERS[0])}, "two parameters are called gradOutput"),
        ({"parameters": (*PARAMETERS, tensor("executor", "", MUTUAL))}, "executor is the name of an out-parameter"),
        ({"parameters": (tensor("gradOutput", "g", MUTUAL), *PARAMETERS[2:])}, "no input has the role MAIN"),
        ({"empty": ("other",)}, "empty names other, which is no input"),
        (
            {"computes": Elementwise(lambda g, y: g * exp(y))},
            "its formula reads y, the symbol of no parameter; the symbols",
        ),
        ({"computes": Elementwise(lambda g, y: g * exp(y))}, "are g, x, and n is a mean's divisor"),
        ({"computes": Elementwise(lambda g, y: g * exp(y))}, "no formula reads x, the symbol of self"),
        ({"computes": Elementwise(lambda g, x: g * x, {"950": Form(lambda g, z: g * z)})}, "its forms['950'] reads z"),
        (
            {"computes": Elementwise(lambda g, x: g * x, unspecified={"tbe": lambda z: z < 0})},
            "its unspecified['tbe'] reads z",
        ),
        ({"computes": Elementwise(lambda g: g)}, "no formula reads x, the symbol of self"),
        ({"points": {"z": (0.0,)}}, "points names z, the symbol of no parameter"),
        (
            {"computes": Elementwise(lambda g, x: g * np.exp(x))},
            "(<lambda>): NumPy's exp does not take the symbols of a formula; use exp of oracle.numerics.expressions",
        ),
        ({"computes": Elementwise(lambda g, x: g * x, {"950": lambda g, x: g * np.sinh(x)})}, "NumPy's sinh does not"),
        ({"computes": Elementwise(lambda g, x: g * x**2)}, "(<lambda>): fails on symbols: TypeError: unsupported"),
    ],
)
def test_a_page_that_cannot_work_is_refused_with_what_is_wrong(changes, told):
    text = refusal(**changes)
    assert text.startswith("operator ")
    assert "--operator outside:PAGE" in text
    assert told in text


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def f(:", r"importing \w+ failed: SyntaxError: "),
        ("import torhc", r"\w+ needs the module 'torhc', which is not installed"),
        ("1 / 0", r"importing \w+ failed: ZeroDivisionError: division by zero"),
        ("", r"\w+ has no attribute 'PAGE'"),
        ("PAGES = 3", r"\w+ has no attribute 'PAGE'; did you mean 'PAGES'\?"),
        ("PAGE = 3", "PAGE is a int; it must be an oracle.operators.Operator"),
    ],
)
def test_a_module_that_does_not_import_is_one_message(source, told, tmp_path, monkeypatch, request):
    module = f"outside_{abs(hash(request.node.name))}"
    tmp_path.joinpath(f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(OracleError, match=f"--operator {module}:PAGE: {told}") as error:
        Registry().add(f"{module}:PAGE")
    assert len(str(error.value).splitlines()) <= 2


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("silu", "did you mean aclnnSiluBackward, or silu_backward?"),
        ("aclnnSilu", "did you mean aclnnSiluBackward"),
        ("Softmax_Backward", "did you mean aclnnSoftmaxBackward"),
        ("aclnnSoftmaks", "known: "),
        ("aclnn", "known: "),
    ],
)
def test_an_unknown_operator_is_told_with_the_one_that_was_meant(name, told):
    with pytest.raises(OracleError, match=f"unknown operator {name!r}; {re.escape(told)}"):
        operator_named(name)
