"""The golden cache: entries read back unchanged, damaged or outdated ones are never used, its size is limited."""

from __future__ import annotations

import os
import shutil
from dataclasses import fields, replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from misbehaving import log_sigmoid

import oracle
from oracle.backends import load
from oracle.case.one_case import run_case
from oracle.case.prepare import GoldenCache, Prepared, cache_in, cache_of
from oracle.operators import OPERATORS, Reference
from oracle.settings.settings import Settings
from oracle.system.cache import code_digest

CASE = log_sigmoid(dtype="bfloat16", self="transposed")


@pytest.fixture
def settings(tmp_path):
    cache_in.cache_clear()
    return Settings(golden_cache=str(tmp_path / "cache"))


def entries(settings: Settings) -> list[Path]:
    return sorted(Path(settings.golden_cache).glob("??/*"))


def test_what_comes_back_is_what_was_made_to_the_last_bit(stated_cases, settings):
    one_per_operator = {(case.op, case.dtype): case for case in stated_cases if case.computes("ascend910b")}
    for case in one_per_operator.values():
        made = Prepared.make(case, settings)
        assert Prepared.kept(case, settings) is None
        made.keep()
        kept = Prepared.kept(case, settings)
        assert kept.references.keys() == made.references.keys()
        for output, field in product(made.references, fields(Reference)):
            assert_same(*(getattr(result.references[output], field.name) for result in (kept, made)))
        assert kept.memory._saved == made.memory._saved  # guards included
        for name in made.memory._saved:
            assert kept.memory.inputs[name].strides == made.memory.inputs[name].strides
        assert repr(kept.memory.call.specs) == repr(made.memory.call.specs)
        assert kept.memory.call.attrs == made.memory.call.attrs


def assert_same(kept, made):
    if isinstance(made, np.ndarray):
        assert (kept.dtype, kept.shape, kept.tobytes()) == (made.dtype, made.shape, made.tobytes())
    else:
        assert kept == made


def test_a_case_in_the_cache_is_not_computed_again_and_one_of_other_code_is(settings, monkeypatch):
    device = load("cpu", {"numerics": "exact"})
    assert run_case(CASE, device, settings).status == "pass"
    kept = cache_of(CASE, settings)
    wrong = Prepared.kept(CASE, settings)
    (reference,) = wrong.references.values()
    reference.golden[0, 0] += 1
    reference.value[0, 0] += 1
    wrong.keep()  # stands for an entry of wrong code: the run uses it
    assert run_case(CASE, device, settings).status == "fail"
    monkeypatch.setattr(kept, "code", "of a changed formula")
    assert run_case(CASE, device, settings).status == "pass"
    assert len(entries(settings)) == 2


def test_what_was_made_by_code_that_has_changed_since_is_not_kept(settings, monkeypatch):
    monkeypatch.setattr("oracle.case.prepare.code_is_as_loaded", lambda: False)
    Prepared.make(CASE, settings).keep()
    assert not entries(settings)


def test_a_changed_formula_is_other_code(tmp_path):
    package = Path(oracle.__file__).parent
    copy = tmp_path / "oracle"
    shutil.copytree(package / "operators", copy / "operators")
    before = code_digest(copy)
    code_digest.cache_clear()
    page = copy / "operators" / f"{OPERATORS[CASE.op].slug}.py"
    page.write_text(page.read_text().replace("1", "2", 1))
    assert code_digest(copy) != before


@pytest.mark.parametrize("change", [{"seed": 1}, {"soc": "ascend950"}, {"cann": "8.5"}])
def test_another_seed_soc_or_cann_is_another_entry(settings, change):
    kept = cache_of(CASE, settings)
    assert kept.path(CASE, settings) != kept.path(CASE, replace(settings, **change))
    assert kept.path(CASE, settings) != kept.path(replace(CASE, attrs={"a": 1}), settings)


def test_a_damaged_entry_is_computed_again(settings):
    Prepared.make(CASE, settings).keep()
    (path,) = entries(settings)
    whole = path.read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert Prepared.kept(CASE, settings) is None
        assert not path.exists()
        path.write_bytes(whole[:place])
        assert Prepared.kept(CASE, settings) is None


def test_a_full_folder_loses_what_was_read_longest_ago(settings):
    kept = GoldenCache(Path(settings.golden_cache), limit=1 << 30)
    cases = [log_sigmoid(f"number{i}", shape=(50,)) for i in range(6)]
    for age, case in enumerate(cases):
        made = Prepared.make(case, settings)
        kept.store(case, settings, made.memory, made.references)
        os.utime(kept.path(case, settings), (age, age))
    assert kept.load(cases[0], settings) is not None  # this makes it the most recently read entry
    kept.limit = 3 * kept.path(cases[0], settings).stat().st_size
    kept.shrink()
    assert [i for i, case in enumerate(cases) if kept.path(case, settings).exists()] == [0, 4, 5]


def test_a_folder_that_cannot_be_written_is_a_warning_and_no_failure(settings):
    Path(settings.golden_cache).write_text("a file")
    with pytest.warns(UserWarning, match="--golden-cache .*cannot be written"):
        assert run_case(CASE, load("cpu", {"numerics": "exact"}), settings).status == "pass"


def test_operators_from_outside_are_not_kept(settings, monkeypatch):
    monkeypatch.setitem(OPERATORS._all(), CASE.op, replace(OPERATORS[CASE.op], origin="my_package"))
    assert cache_of(CASE, settings) is None
