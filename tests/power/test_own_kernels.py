"""A user's kernels, of any kind: noticed kernels, survivors, and flagged right kernels."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import oracle
from oracle.cli import main
from oracle.model.errors import OracleError
from oracle.operators import writes
from oracle.power.own_kernels import score_on
from oracle.settings.settings import Settings

OP = "aclnnLogSigmoidBackward"
FEW = "[float32-"  # cases of one type


class Kernel:
    """A right kernel that spoils its results from its nth computation on; it has a counter and a lock."""

    def __init__(self, name, *, wrong=True, spoils_from=1 << 30, op=OP):
        self.name, self.op, self.wrong, self.spoils_from = name, op, wrong, spoils_from
        self.calls, self.lock = 0, threading.Lock()

    def run(self, call):
        status = oracle.validate(call)
        if status.ok and writes(call):
            (name,) = call.outputs
            given = {**call.inputs, **call.attrs, name: call.outputs[name]}
            self.calls += 1
            result = oracle.golden(call.op, soc=call.soc, **given)[name]
            call.outputs[name][...] = result if self.calls < self.spoils_from else result + 1
        return status


@pytest.fixture(scope="module")
def cases(stated_cases):
    return tuple(case for case in stated_cases if case.op == OP and FEW in case.id)


def scored(kernels, cases, **options):
    return score_on(kernels, cases, Settings(), **options)


def test_a_wrong_kernel_is_noticed_or_survives_and_a_right_one_is_flagged_or_not(cases):
    kernels = (Kernel(*args, **options) for args, options in (  # an iterable without a length
        (("survivor",), {}), (("right",), {"wrong": False}), (("late",), {"spoils_from": 3}),
        (("first",), {"spoils_from": 1}), (("flagged",), {"wrong": False, "spoils_from": 2}),
    ))  # fmt: skip
    result = scored(kernels, cases)
    flagged = result.flagged[0]
    assert result.to_json() == {
        "wrong": 3, "noticed": 2, "survivors": ["survivor"], "right": 2,
        "flagged": [{"name": "flagged", "case": flagged.case, "reason": flagged.reason}],
    }  # fmt: skip
    assert [f.kernel.name for f in result.findings] == ["survivor", "right", "late", "first", "flagged"]
    first, late = (next(f for f in result.noticed if f.kernel.name == name) for name in ("first", "late"))
    assert first.judged < late.judged  # its state builds up over its own calls
    assert "times the bound" in flagged.reason
    assert not result.passed


def test_a_kernel_that_raises_is_noticed_and_one_that_takes_nothing_says_why(cases):
    raises, refuses = Kernel("raises"), Kernel("refuses")
    raises.run = lambda call: 1 // 0
    refuses.unsupported = lambda call: "not on Sundays"
    result = scored([raises, refuses], cases)
    assert [f.reason.partition(":")[0] for f in result.noticed] == ["ZeroDivisionError"]
    (survivor,) = result.survivors
    assert (survivor.judged, survivor.refused) == (0, "not on Sundays")


def test_the_soc_is_the_kernels_own_or_the_one_asked_for(cases):
    own, other = Kernel("own", spoils_from=1), Kernel("other", spoils_from=1)
    own.soc = "ascend950"
    assert [f.kernel.soc for f in scored([own, other], cases, soc="ascend910").findings] == ["ascend950", "ascend910"]


def test_what_is_no_kernel_is_refused_with_its_place_and_what_it_lacks(cases):
    class Nameless:
        op = OP

    for kernels, text in (
        ([Kernel("a"), Nameless()], r"kernel 1 \(Nameless\) has no name and no run\(call\)"),
        ([Kernel("a", op="aclnnNothing")], r"kernel 0 \(a\): unknown operator 'aclnnNothing'"),
        ([Kernel("a", wrong="no")], "wrong is 'no'; it must be True"),
        ([], "there is no kernel"),
        ("nowhere_at_all:KERNELS", "power --kernels nowhere_at_all:KERNELS: no module"),
    ):
        with pytest.raises(OracleError, match=text):
            scored(kernels, cases)


MODULE = """
import os, signal, threading
from test_own_kernels import Kernel

class Dies(Kernel):
    def run(self, call):
        if self.calls == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(call)

class Alike(Kernel):
    __hash__ = object.__hash__  # a set's order is another one in every process

KERNELS = {Dies("dies", wrong=False), Alike("spoils", spoils_from=2)}
"""


def test_the_command_runs_a_module_in_processes_of_its_own(tmp_path, monkeypatch, stated_files, capsys):
    """Kernels hold locks, die, and are in a set: no process sends them; a death affects one kernel only."""
    (tmp_path / "past_bugs.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(str(__file__).rpartition("/")[0])
    file = next(p for p in stated_files if p.stem == "log_sigmoid_backward")
    written = tmp_path / "score.json"
    assert main(["power", str(file), "--kernels", "past_bugs:KERNELS", "--jobs", "1", "--json", str(written)]) == 1
    score = json.loads(written.read_text("utf-8"))
    assert (score["wrong"], score["noticed"], score["survivors"], score["right"]) == (1, 1, [], 1)
    (flagged,) = score["flagged"]
    assert flagged["name"] == "dies"
    assert flagged["reason"] == "crash: the process running it died: signal 9 (SIGKILL)"
    shown = capsys.readouterr().out
    assert "1 of 1 wrong kernels; 1 of 1 right kernels are flagged" in shown


def test_options_of_the_registry_are_refused_beside_kernels(capsys):
    assert main(["power", "--kernels", "a:B", "--full-matrix"]) == 2
    assert main(["power", "--json", "x.json"]) == 2
    assert "leave it out" in capsys.readouterr().err


class TakesNoStatus(Kernel):
    """Computes only: it does not declare answers_status, so it must not be called for a status."""

    def run(self, call):
        assert all(isinstance(value, np.ndarray) for value in call.inputs.values()), "no array"
        return super().run(call)


def test_a_kernel_that_answers_no_statuses_is_not_asked_for_them(cases):
    result = scored((TakesNoStatus("right", wrong=False),), cases)
    assert result.flagged == []
    assert result.findings[0].judged < len(cases)
