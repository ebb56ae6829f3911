"""Laws of the search: drawn calls are valid, right kernels pass, a wrong one is found, reduced and repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from misbehaving import Then
from ordinary import one_of_each_kind

import oracle
from oracle.backends.cpu import Backend as Right
from oracle.case.one_case import run_case
from oracle.catalogue import Case, load
from oracle.catalogue.expand.drawing import RandomCalls, words
from oracle.cli import main
from oracle.model.call import Call
from oracle.operators import OPERATORS
from oracle.search import KEPT, Search, catalogue_text
from oracle.settings.settings import Settings

SOC = "ascend910b"
SETTINGS = replace(Settings(), layers=("structure", "strict"), gate=("structure", "strict"))
FEW = (
    "aclnnSoftplusBackward",
    "aclnnTanhBackward",
    "aclnnSoftmaxBackward",
    "aclnnNLLLossBackward",
    "aclnnPreluBackward",
)


def drawn(name: str, count: int, seed: int = 0) -> list[Case]:
    drawer = RandomCalls(OPERATORS[name], SOC, "", seed)
    return [case for case in islice(iter(drawer.draw, ...), count) if case is not None]


def wrong(holds: Callable[[Call], bool]) -> Then:
    """Return a right device that doubles the golden where a condition of the call holds."""

    def double(call: Call) -> None:
        for output in call.outputs.values():
            if holds(call) and output is not None:
                output[...] = output + output

    return Then(double)


# drawing --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FEW)
def test_a_drawn_call_is_one_that_the_operator_takes(name: str) -> None:
    cases = drawn(name, 30)
    assert len(cases) == len({case.id for case in cases}) > 20  # a draw whose tries all fail is rare
    assert all(case.op == name and case.computes(SOC) for case in cases)


@pytest.mark.parametrize("name", one_of_each_kind(OPERATORS))
def test_a_drawn_call_is_the_same_when_it_is_read_again(name: str, tmp_path: Path) -> None:
    written = drawn(name, 12)
    (tmp_path / "found.yaml").write_text(catalogue_text(name, [(case, "found by search") for case in written]))
    read = load(tmp_path / "found.yaml")
    assert len(read) == len(written)
    for one, other in zip(read, written, strict=True):
        assert one.attrs == other.attrs
        for plans, wanted in ((one.inputs, other.inputs), (one.outputs, other.outputs)):
            assert {n: p and (p.shape, p.dtype) for n, p in plans.items()} == {
                n: p and (p.shape, p.dtype) for n, p in wanted.items()
            }


def test_the_same_seed_draws_the_same_calls_and_another_others() -> None:
    assert drawn("aclnnTanhBackward", 20) == drawn("aclnnTanhBackward", 20)
    assert drawn("aclnnTanhBackward", 20) != drawn("aclnnTanhBackward", 20, seed=1)


def has(tensor: str, **wanted: Any) -> Callable[[Case], bool]:
    """Return whether a tensor of a case has a plan with these attributes."""
    return lambda case: (p := case.inputs[tensor]) is not None and all(getattr(p, n) == v for n, v in wanted.items())


def lengths(case: Case, tensor: str) -> tuple[int, ...]:
    return {**case.inputs, **case.outputs}[tensor].shape  # type: ignore[union-attr]


def broadcasts(case: Case) -> bool:
    return lengths(case, "output") != lengths(case, "gradInput")


def is_column(case: Case) -> bool:
    return lengths(case, "gradOutput")[-1:] == (1,) != lengths(case, "output")[-1:]


def is_alone_offset(case: Case) -> bool:
    gradient = case.inputs["gradOutput"]
    return gradient is not None and gradient.view.startswith("offset") and has("output", view="contiguous")(case)


def is_mixed(case: Case) -> bool:
    gradient = case.inputs["gradOutput"]
    return gradient is not None and not has("self", dtype=gradient.dtype)(case)


WANTED: dict[str, tuple[str, Callable[[Case], bool]]] = {
    "the main operand broadcasts": ("aclnnTanhBackward", broadcasts),
    "the gradient is the column": ("aclnnTanhBackward", is_column),
    "the gradient alone is offset": ("aclnnTanhBackward", is_alone_offset),
    "a gradient of another dtype": ("aclnnSoftplusBackward", is_mixed),
    "a threshold above 88": ("aclnnSoftplusBackward", lambda case: case.attrs["threshold"] > 88),
    "a limit beyond 65504": ("aclnnHardtanhBackward", lambda case: case.attrs["max"] > 65504),
    "an index type": ("aclnnNLLLossBackward", has("target", dtype="uint8")),
}


@pytest.mark.parametrize(("name", "holds"), WANTED.values(), ids=WANTED)
def test_what_lists_forgot_is_drawn(name: str, holds: Callable[[Case], Any]) -> None:
    assert any(map(holds, drawn(name, 300)))  # each has a chance of a few percent or more


def test_a_draw_tells_its_conditions() -> None:
    (case,) = drawn("aclnnTanhBackward", 1)
    assert {"dtype of output", "layout of output", "offset of gradOutput"} <= {subject for subject, _ in words(case)}


# searching ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FEW)
def test_right_kernels_pass(name: str) -> None:
    device = Right()
    for case in drawn(name, 60, seed=3):
        record = run_case(case, device, SETTINGS)
        assert record.ok, (case, record.reason)


DEFECTS: dict[str, Callable[[Call], bool]] = {
    "offset of the gradient": lambda c: c.spec("gradOutput").offset % 16 != 0,  # type: ignore[union-attr]
    "main operand broadcast": lambda c: c.inputs["output"].size < c.outputs["gradInput"].size,  # type: ignore[union-attr]
    "rank 1, strided": lambda c: c.inputs["output"].ndim == 1 and c.inputs["output"].strides[0] > 4,  # type: ignore[union-attr]
}


@pytest.mark.parametrize("holds", DEFECTS.values(), ids=DEFECTS)
def test_a_wrong_kernel_is_found_and_its_family_repeats_it(holds: Callable[[Call], bool], tmp_path: Path) -> None:
    device, op = wrong(holds), OPERATORS["aclnnTanhBackward"]
    search = Search([op], SETTINGS, lambda case: run_case(case, device, SETTINGS))
    for state in search.seek(20.0):
        if state.failures:
            break
    (first, *_) = search.found[op.name].failures
    path = tmp_path / "found.yaml"
    path.write_text(catalogue_text(op.name, [(first.reduced, "found by search, in a test")]))
    (case,) = load(path)
    assert not run_case(case, device, SETTINGS).ok
    assert run_case(case, Right(), SETTINGS).ok
    assert sum(np.prod(plan.shape) for plan in case.inputs.values() if plan) <= 200  # reduced: tens of elements


def test_an_operator_with_enough_failures_is_left() -> None:
    device, op = wrong(lambda call: True), OPERATORS["aclnnTanhBackward"]
    search = Search([op], SETTINGS, lambda case: run_case(case, device, SETTINGS))
    assert sum(1 for _ in search.seek(30.0)) < 30  # turns of a second
    assert 1 <= len(search.found[op.name].failures) <= KEPT


def test_an_infinity_in_a_row_takes_nothing_from_the_bound_of_the_others() -> None:
    """The first find of the search: with -inf in the row, the bound of Softmax was 0."""
    (reference,) = oracle.reference("aclnnSoftmax", self=np.array([1.25, -np.inf, 0], np.float32), dim=0).values()
    assert (reference.bound[[0, 2]] > 2.0**-24 * reference.value[[0, 2]]).all()


# the command ----------------------------------------------------------------------------------------------------------


def test_the_command_says_that_nothing_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["search", "--backend", "cpu", "--op", "aclnnTanhBackward", "--minutes", "0.02", "-o", str(tmp_path)]
    assert main(asked) == 0
    assert "of these fail: 0" in capsys.readouterr().out
    (tmp_path / "tanh_backward.yaml").touch()
    assert main(asked) == 0
    assert "tanh_backward.yaml is of an earlier search" in capsys.readouterr().out
    assert (tmp_path / "search.jsonl").exists()


def test_a_search_that_judged_nothing_is_not_green(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["search", "--backend", "misbehaving:Unsupporting", "--op", "aclnnRelu", "--minutes", "0.01"]
    assert main([*asked, "-o", str(tmp_path)]) == 1
    assert "nothing was judged of: aclnnRelu" in capsys.readouterr().out


def test_an_operator_that_the_soc_refuses_is_no_failure_beside_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["search", "--backend", "cpu", "--soc", "ascend910", "--minutes", "0.01", "-o", str(tmp_path)]
    assert main([*asked, "--op", "aclnnFastGelu", "--op", "aclnnRelu"]) == 0
    assert "ascend910 refuses every call of: aclnnFastGelu" in capsys.readouterr().out
    assert main([*asked, "--op", "aclnnFastGelu"]) == 1  # it judged nothing


def test_a_call_without_a_golden_is_no_failure_of_the_device() -> None:
    (case,) = drawn("aclnnRelu", 1)
    search = Search([OPERATORS["aclnnRelu"]], SETTINGS, lambda call: replace(
        run_case(case, Right(), SETTINGS), status="error", reason="oracle: no precision shows the sum"))  # fmt: skip
    next(search.seek(0.1))
    state = search.found["aclnnRelu"]
    assert state.calls == sum(state.skipped.values()) > 0
    assert not state.failures


def test_a_folder_that_cannot_be_made_is_told_before_the_search(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["search", "--backend", "cpu", "--op", "aclnnRelu", "-o", str(tmp_path / "file")]) == 2
    assert "name a folder that can be made" in capsys.readouterr().err


def test_interrupted_it_writes_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Search, seconds: float) -> Any:
        yield next(iter(self.found.values()))
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "seek", interrupted)
    assert main(["search", "--backend", "cpu", "--op", "aclnnTanhBackward", "-o", str(tmp_path)]) == 130
    assert (tmp_path / "search.jsonl").read_text().count("\n") == 2  # the run and its end
