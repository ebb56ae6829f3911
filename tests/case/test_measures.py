"""A record's figures of a case for its pictures: the error map by rows and columns, and the case's size."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from oracle.backends.cpu import Backend
from oracle.case.one_case import run_case
from oracle.catalogue import default_dir, load
from oracle.explain.detail import error_grid
from oracle.record.types import CaseRecord, line_of
from oracle.settings.settings import Settings


@pytest.mark.parametrize(
    ("shape", "size"), [((4, 6), (4, 6, 4, 6)), ((2, 3, 5), (6, 5, 6, 5)), ((100, 200), (100, 200, 16, 48))]
)
def test_an_error_grid_has_the_worst_error_of_each_block(shape: tuple[int, ...], size: tuple[int, ...]) -> None:
    score = np.zeros(shape)
    score.reshape(-1)[-1] = np.nan
    grid = error_grid(score)
    assert grid is not None
    assert (grid.rows, grid.columns, grid.height, grid.width) == size
    assert len(grid.values) == grid.height * grid.width
    assert grid.values[-1] == np.inf
    assert not any(grid.values[:-1])


@pytest.mark.parametrize("shape", [(), (7,), (1, 7), (7, 1), (0, 3)])
def test_what_is_no_matrix_has_no_grid(shape: tuple[int, ...]) -> None:
    assert error_grid(np.zeros(shape)) is None


def line(case_id: str, **options: Any) -> CaseRecord:
    file = default_dir() / f"{case_id.partition('/')[0]}.yaml"
    (case,) = (case for case in load(file) if case.id == case_id)
    return run_case(case, Backend(**options), Settings())


def test_a_record_says_how_many_elements_a_case_has_and_how_many_enter_one_result() -> None:
    result = line("softmax_backward/first_look[float16-7x33-dim=-1-real]", numerics="native")
    assert (result.elements, result.reduced) == (231, 33)
    assert result.magnitude is not None
    assert result.detail is not None
    assert result.detail.error_grid is not None
    assert (result.detail.error_grid.rows, result.detail.error_grid.columns) == (7, 33)
    written = json.loads(json.dumps(line_of(result)))
    assert written["detail"]["error_grid"]["width"] == 33


def test_a_case_that_passes_says_too_how_many_elements_lie_how_many_ulps_from_the_golden() -> None:
    result = line("log_sigmoid_backward/first_look[float32-6x35-buffer]")
    assert (result.status, result.elements, result.reduced) == ("pass", 210, None)
    assert "reduced" not in line_of(result)  # an elementwise case says nothing of it
    assert set(result.ulps) - {"0"}, "a kernel in float32 is not correctly rounded"
    assert sum(result.ulps.values()) == result.elements
    failed = line("softmax_backward/first_look[float16-7x33-dim=-1-real]", numerics="native")
    assert failed.detail is not None
    assert failed.ulps == {name: n for name, n in failed.detail.ulp_histogram.items() if n}
