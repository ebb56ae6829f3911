"""aclnnPreluBackward: the golden of both outputs against MPFR, and the message if one of two outputs fails."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import gmpy2
import numpy as np
import pytest
from calls import broken, call_of
from gmpy2 import mpq
from misbehaving import Then
from truth import TYPES, rounded, wrong

import oracle
from oracle import Call, OracleError, TensorSpec
from oracle.case.one_case import run_case
from oracle.catalogue import default_dir, load
from oracle.fixtures.files import case_folder, write
from oracle.fixtures.verifying import verify
from oracle.operators.answers.api import references
from oracle.reduce.script import script
from oracle.reduce.shrink import shrink
from oracle.reporting.case_text import case_text
from oracle.settings.settings import Settings

NAME = "aclnnPreluBackward"
ROUNDS = max(1, int(os.environ.get("ACLNN_TEST_ELEMENTS", "1500")) // 1500)
SHAPES = [((5, 3), (3,)), ((2, 4, 9), (4,)), ((3, 3, 3), (1, 3, 1)), ((2, 5, 7), (1, 1)), ((40,), (1,)), ((), ()),
          ((1, 30), (30,)), ((3, 2, 2, 3), (2, 1))]  # fmt: skip
CASES = {case.id: case for case in load(default_dir() / "prelu_backward.yaml", tier="smoke")}
CASE = CASES["prelu_backward/channels[float32-4x5x6-each]"]


def given(dtype: str, own: tuple[int, ...], weight: tuple[int, ...], way: str, seed: int) -> dict[str, Any]:
    """Return operands; ``cancel``: opposite pairs (and an odd term), ``coarse``: few digits, sums are ties or 0."""
    r = np.random.default_rng([seed, *dtype.encode(), *own, *weight, *way.encode()])
    x, g = r.normal(size=own) - 0.5, r.normal(size=own) * 2.0 ** r.integers(-9, 4, own)
    if way == "coarse":
        x, g = np.round(2 * x) / 2, np.round(g) / 4
    if way == "cancel" and own and own[0] > 1:
        x, g = np.array(x), np.array(g)
        half = own[0] // 2
        x[half : 2 * half], g[half : 2 * half] = x[:half], -g[:half]
    if way == "ends":
        with np.errstate(over="ignore"):
            g = g * float(np.finfo(np.float16).smallest_subnormal) * 8
    operands = {"gradOutput": g, "self": x, "weight": r.normal(size=weight)}
    return {name: np.asarray(values).astype(TYPES[dtype]) for name, values in operands.items()}


def truth(a: dict[str, Any], dtype: str) -> dict[str, np.ndarray]:
    """Return the results of the sheet's formula, element by element, in rationals."""
    x, g, w = (a[n].astype(np.float64) for n in ("self", "gradOutput", "weight"))
    shared, sums = w.size == 1, {}
    first = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        channel = 0 if shared else index[1]
        one, other = mpq(float(x[index])), mpq(float(g[index]))
        positive = one > 0
        first[index] = rounded(other if positive else other * mpq(float(w.reshape(-1)[channel])), dtype)
        sums[channel] = sums.get(channel, mpq(0)) + (0 if positive else other * one)
    second = np.array([rounded(mpq(sums[k]), dtype) for k in sorted(sums)])
    return {"gradInput": first, "gradWeight": second.reshape(w.shape if shared else (-1,))}


@pytest.mark.parametrize("dtype", TYPES)
def test_both_outputs_are_correctly_rounded_and_public_kernels_stay_within_the_bounds(dtype: str) -> None:
    for own, weight in SHAPES:
        for way in ("plain", "coarse", "cancel", "ends"):
            for seed in range(ROUNDS):
                a = given(dtype, own, weight, way, seed)
                with gmpy2.context(precision=600):
                    wanted = truth(a, dtype)
                result = oracle.golden(NAME, **a)
                for name, expected in wanted.items():
                    assert result[name].shape == expected.shape
                    assert wrong(result[name], expected) == 0, (own, weight, way, name)
                assert [broken(call_of(NAME, soc, **a)) for soc in ("ascend910b", "ascend950")] == [{}, {}]


def test_a_long_sum_is_correctly_rounded() -> None:
    a = given("float16", (20000, 2), (2,), "coarse", 0)
    g, x = (a[n].astype(np.float64) for n in ("gradOutput", "self"))
    assert wrong(oracle.golden(NAME, **a)["gradWeight"], np.where(x > 0, 0, g * x).sum(axis=0).astype(np.float16)) == 0


def test_special_values_reach_their_own_channel_alone() -> None:
    a = given("float32", (4, 3, 5), (3,), "plain", 0)
    a["self"][0, 1, 0] = np.nan
    a["gradOutput"][1, 2, 1], a["self"][1, 2, 1] = np.inf, -1
    a["gradOutput"][2, 0, 2], a["self"][2, 0, 2] = np.nan, 1
    result = oracle.golden(NAME, **a)["gradWeight"]
    assert np.isfinite(result[0])
    assert np.isnan(result[1])
    assert result[2] == -np.inf


def test_kernels_that_multiply_by_masks_are_not_judged_where_these_make_nan() -> None:
    a = given("float32", (4, 3), (3,), "plain", 0)
    a["self"][1, 0], a["weight"][2], a["self"][:, 2] = np.inf, np.inf, 1
    by_soc = {
        soc: {n: r.unspecified for n, r in references(call_of(NAME, soc, **a)).items()}
        for soc in ("ascend910b", "ascend950")
    }
    assert by_soc["ascend910b"]["gradWeight"].tolist() == [True, False, True]
    assert by_soc["ascend910b"]["gradInput"][:, 2].all()
    assert not any(unspecified.any() for unspecified in by_soc["ascend950"].values())


def test_an_empty_batch_leaves_the_gradient_of_the_weights_unwritten() -> None:
    none = np.empty((0, 3), np.float32)
    with pytest.raises(OracleError, match=r"leaves gradWeight of shape \(3,\) unwritten"):
        oracle.golden(NAME, gradOutput=none, self=none, weight=np.ones(3, np.float32))


def test_the_output_may_be_given_by_name() -> None:
    a = given("float32", (2, 3), (3,), "plain", 0)
    assert set(oracle.golden(NAME, **a, gradWeight=TensorSpec((3,), "float32"))) == {"gradInput", "gradWeight"}
    with pytest.raises(OracleError, match=r"gradWeight has shape \(1, 3\)"):
        oracle.golden(NAME, **a, gradWeight=TensorSpec((1, 3), "float32"))


# ---- one of two outputs fails ----------------------------------------------------------------------------------------


def doubled(call: Call) -> None:
    call.outputs["gradWeight"][...] *= 2


def shorter(call: Call) -> None:
    call.outputs["gradWeight"] = call.outputs["gradWeight"][:-1].copy()


def both(call: Call) -> None:
    call.outputs["gradInput"][...] *= 2
    call.outputs["gradWeight"][...] = np.nan


def test_a_failure_names_its_output() -> None:
    assert run_case(CASE, Then(lambda call: None), Settings()).status == "pass"
    for spoil, message, output in (
        (doubled, "standard: gradWeight: ", "gradWeight"),
        (shorter, "gradWeight has shape (4,), expected (5,)", ""),
        (both, "structure: gradWeight: NaN exactly where the golden is NaN", "gradWeight"),
    ):
        record = run_case(CASE, Then(spoil), Settings())
        assert record.status == "fail"
        assert message in record.reason
        assert record.detail is not None
        assert record.detail.output == output
    assert record.verdicts["strict"].reason.startswith("gradInput: ")
    assert "; gradWeight: " in record.verdicts["strict"].reason
    assert "(output gradWeight)" in case_text(record)


def test_a_view_of_an_output_is_judged_with_its_guards() -> None:
    plans = {**CASE.outputs, "gradWeight": replace(CASE.outputs["gradWeight"], view="strided")}
    record = run_case(
        replace(CASE, outputs=plans), Then(lambda call: call.outputs["gradWeight"].base.fill(0)), Settings()
    )
    assert "elements outside gradWeight were written" in record.reason


def test_shrinking_cuts_every_tensor_that_has_the_axis_and_the_script_tells_the_output() -> None:
    shrunk = shrink(CASE, Then(doubled), Settings(backend="cpu"))
    main, weight = shrunk.case.inputs["self"], shrunk.case.outputs["gradWeight"]
    assert weight.shape == (main.shape[1:2] or (1,))
    assert np.prod(main.shape) <= 4
    written = script(shrunk)
    assert "'gradInput': Output(" in written
    assert "'gradWeight': Output(" in written
    compile(written, "script", "exec")


def test_fixtures_hold_a_golden_for_each_output(tmp_path: Any) -> None:
    write(tmp_path / "npy", [CASE], soc="ascend910b")
    names = {path.name for path in (tmp_path / "npy" / case_folder(CASE.id)).iterdir()}
    assert {"golden_gradInput__float32.npy", "golden_gradWeight__float32.npy"} <= names
    assert verify(tmp_path / "npy") == []
    write(tmp_path / "ttk", [CASE], soc="ascend910b", layout="ttk")
    assert len(list((tmp_path / "ttk").glob("*/golden_1_float32__shape_5.bin"))) == 1
