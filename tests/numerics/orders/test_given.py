"""A function instead of a formula: rounded once, and judged only by structure and the standard."""

from __future__ import annotations

from pathlib import Path

import gmpy2
import numpy as np
import processes
import pytest
from misbehaving import Makes
from ml_dtypes import bfloat16
from ordinary import in_full_alone

from oracle import OracleError, golden
from oracle.case.one_case import run_case
from oracle.catalogue import load
from oracle.numerics.orders.given import Given
from oracle.operators import OPERATORS
from oracle.operators.definition.page_checks import accepted
from oracle.record.types import GIVEN
from oracle.settings.settings import Settings

PAGE = "my_bessel_backward"
FAMILIES = """\
aclnn_oracle: 1
operator: aclnnMyBesselBackward
defaults:
  main: self
  inputs: {gradOutput: nonzero 0.5 4, self: normal 0 3}
  output: {}
families:
  values: {why: ordinary values, tier: smoke, dtype: floats, shape: [[3, 5], [40, 7]]}
"""


@pytest.fixture
def bessel(monkeypatch):
    import given_page

    monkeypatch.setitem(OPERATORS._all(), given_page.OPERATOR.name, accepted(given_page.OPERATOR))
    return given_page


@pytest.mark.parametrize("kind", [np.float16, bfloat16, np.float32])
def test_the_golden_is_the_function_rounded_once(bessel, kind):
    x = np.linspace(-4, 4, 301).astype(kind)
    result = golden("aclnnMyBesselBackward", gradOutput=np.ones_like(x), self=x)["gradInput"]
    with gmpy2.context(gmpy2.get_context(), precision=200):
        exact = [gmpy2.mpq(gmpy2.j0(gmpy2.mpfr(float(v)))) for v in x]
    for near, value in zip(result, exact, strict=True):
        beside = [np.nextafter(near, kind(end)) for end in (-10, 10)]
        assert all(abs(gmpy2.mpq(float(near)) - value) <= abs(gmpy2.mpq(float(b)) - value) for b in beside)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_a_value_next_to_a_tie_is_rounded_by_all_its_digits(kind):
    half = 2.0 ** -(11 if kind is np.float16 else 24)
    with gmpy2.context(gmpy2.get_context(), precision=300):
        tie = gmpy2.mpfr(1) + half
        result = Given(lambda a: np.array([tie - gmpy2.mpfr(2) ** -200, tie, tie + gmpy2.mpfr(2) ** -200], object))
        values = result.value({}, (3,)).astype(kind)
    assert values.tolist() == [1.0, 1.0, 1.0 + 2 * half]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: np.zeros(2), r"returns an array of float64 of shape \(2,\); return float64 or mpfr of shape \(3,\)"),
        (lambda a: 1 / 0, "the given function fails: ZeroDivisionError"),
        (lambda a: np.zeros(3, complex), "returns an array of complex128"),
    ],
)
def test_a_function_that_cannot_work_is_told_with_its_place(function, message):
    with pytest.raises(OracleError, match=message):
        Given(function).value({}, (3,))


def run(factor: float, folder, **settings):
    (folder / f"{PAGE}.yaml").write_text(FAMILIES)
    device = Makes(lambda call, result, held: result * factor)
    return [run_case(case, device, Settings(**settings)) for case in load(folder / f"{PAGE}.yaml")]


def test_the_strict_layer_says_that_it_does_not_judge(bessel, tmp_path):
    for record in run(1.0, tmp_path):
        assert (record.status, record.reason) == ("pass", "strict: not judged: given function")
        assert "strict" not in record.verdicts
        assert record.verdicts["structure"].metrics[GIVEN] == 1


@pytest.mark.parametrize(("factor", "layer"), [(1.5, "standard"), (np.nan, "structure")])
def test_structure_and_the_standard_judge_it(bessel, tmp_path, factor, layer):
    for record in run(factor, tmp_path):
        assert record.status == "fail"
        assert not record.verdicts[layer].passed


@in_full_alone
def test_every_report_names_the_operator(tmp_path):
    (tmp_path / f"{PAGE}.py").write_text((Path(__file__).parents[2] / "given_page.py").read_text("utf-8"))
    (tmp_path / f"{PAGE}.yaml").write_text(FAMILIES)
    commands = (
        ("run", "--operator", f"{PAGE}:OPERATOR", f"{PAGE}.yaml", "--record", "r.jsonl", "--report", "run.html"),
        ("report", "r.jsonl", "-o", "en.md"), ("report", "r.jsonl", "-o", "zh.md", "--lang", "zh"),
        ("report", "r.jsonl", "-o", "zh.html", "--lang", "zh"), ("report", "r.jsonl", "-o", "groups.json"),
        ("info", "aclnnMyBesselBackward", "--operator", f"{PAGE}:OPERATOR"),
    )  # fmt: skip
    outputs = {}
    for words in commands:
        done = processes.oracle(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        outputs[words[0]] = done.stdout
    english = "The strict layer does not judge aclnnMyBesselBackward: a given function."
    chinese = "strict 层不判定 aclnnMyBesselBackward：其计算是给定函数。"
    assert english in outputs["run"]
    assert "gradInput: a given function; the strict layer says: not judged: given function" in outputs["info"]
    for file, sentence in (("run.html", english), ("en.md", english), ("zh.md", chinese), ("zh.html", chinese)):
        assert sentence in (tmp_path / file).read_text("utf-8")
