"""Pages from outside: an unusable page is refused with a reason, before a case runs."""

from __future__ import annotations

import re

import pytest

from oracle.model.errors import OracleError
from oracle.operators.answers.registry import Registry, operator_named


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f(:", r"importing \w+ failed: SyntaxError: "),
        ("import torhc", r"\w+ needs the module 'torhc', which is not installed"),
        ("1 / 0", r"importing \w+ failed at .*\.py:1: ZeroDivisionError: division by zero"),
        ("", r"\w+ has no attribute 'PAGE'"),
        ("PAGES = 3", r"\w+ has no attribute 'PAGE' \(did you mean 'PAGES'\?\)"),
        ("PAGE = 3", "PAGE is a int; it must be an oracle.operators.Operator"),
    ],
)
def test_a_module_that_does_not_import_is_one_message(source, message, tmp_path, monkeypatch, request):
    module = f"outside_{abs(hash(request.node.name))}"
    tmp_path.joinpath(f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(OracleError, match=f"--operator {module}:PAGE: {message}") as error:
        Registry().add(f"{module}:PAGE")
    assert len(str(error.value).splitlines()) <= 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("silu_backwrd", "did you mean aclnnSiluBackward, or silu_backward?"),
        ("aclnnSiluBackwrd", "did you mean aclnnSiluBackward"),
        ("Softmax_Backward", "did you mean aclnnSoftmaxBackward"),
        (
            "aclnnZzz",
            "make one of your own known by --operator module:NAME, in Python by oracle.operators.OPERATORS.add",
        ),
        ("aclnn", "make one of your own known by --operator module:NAME, in Python by oracle.operators.OPERATORS.add"),
    ],
)
def test_an_unknown_operator_is_told_with_the_one_that_was_meant(name, message):
    with pytest.raises(OracleError, match=f"unknown operator {name!r}; {re.escape(message)}"):
        operator_named(name)
