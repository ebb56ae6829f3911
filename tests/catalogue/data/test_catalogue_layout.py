"""Every memory layout holds the values of its contiguous twin, between guards, where its TensorSpec says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oracle import OracleError
from oracle.catalogue.data.case import TensorPlan, make_buffer, spec_of_plan
from oracle.catalogue.data.layout import GUARD_BYTES, VIEWS, allocate, arrange, parse, shares_elements
from oracle.model.dtypes import DTYPES

VIEW_NAMES = [*(v for v in VIEWS if v != "as"), "offset:1", "strided:3", "padded:1", "expanded:0"]
SHAPES = [(), (1,), (5,), (3, 4), (1, 1), (2, 1, 5), (2, 3, 1, 4), (0,), (3, 0), (0, 4)]
DTYPE_NAMES = ["float16", "bfloat16", "float32", "float64", "int64", "int32", "uint8"]
FITTING = [(s, v) for s in SHAPES for v in VIEW_NAMES if len(s) >= VIEWS[parse(v)[0]][1]]
FITTING += [((3, 4), "as:11,2@5/40"), ((3, 4), "as:0,3@1/11"), ((), "as:@2/3"), ((2, 3), "as:1,2@0/6")]
MOVED = [v for v in VIEW_NAMES if not v.startswith(("offset", "contiguous"))]
FITTING += [((3, 4), f"{view}+{k}") for k, view in enumerate(MOVED, 1)]


def address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("dtype", DTYPE_NAMES)
def test_values_equal_the_contiguous_twin(dtype: str) -> None:
    gen = {"gen": "classes", "count": 100} if "int" in dtype else {"gen": "normal"}
    for shape, view in FITTING:
        made = make_buffer(TensorPlan(shape, dtype, gen, view), "case", "p", 0).view
        assert made.shape == shape
        assert parse(view)[0] != "repeated" or not any(made.strides)
        if parse(view)[0] == "expanded":
            assert made.strides[parse(view)[1] % len(shape)] == 0
        once = tuple(min(1, n) if stride == 0 else n for n, stride in zip(shape, made.strides, strict=True))
        twin = np.broadcast_to(make_buffer(TensorPlan(once, dtype, gen), "case", "p", 0).view, shape)
        assert np.ascontiguousarray(made).tobytes() == np.ascontiguousarray(twin).tobytes(), (shape, view)


@pytest.mark.parametrize(("shape", "view"), FITTING)
def test_the_view_lies_where_the_spec_says_and_guards_surround_it(shape: tuple[int, ...], view: str) -> None:
    buffer, spec = allocate(shape, "float32", view), spec_of_plan(TensorPlan(shape, "float32", None, view))
    guard = GUARD_BYTES // 4
    assert buffer.base.size == buffer.storage.size + 2 * guard
    assert address(buffer.view) == address(buffer.base) + GUARD_BYTES + 4 * spec.offset
    if buffer.storage.size:  # NumPy lets an empty slice point anywhere
        assert address(buffer.storage) == address(buffer.base) + GUARD_BYTES
    strides = spec.strides if spec.strides is not None else arrange(shape, "contiguous").strides
    assert buffer.view.strides == tuple(4 * s for s in strides)
    assert math.prod(spec.storage_shape) == buffer.storage.size
    buffer.view[...] = 7
    assert not buffer.base[:guard].any()
    assert not buffer.base[-guard:].any()
    assert np.flatnonzero(buffer.base).tolist() == sorted(set(_places(buffer.view, buffer.base)))


def _places(view: np.ndarray, base: np.ndarray) -> list[int]:
    start = (address(view) - address(base)) // view.itemsize
    return [
        start + sum(i * s // view.itemsize for i, s in zip(index, view.strides, strict=True))
        for index in np.ndindex(view.shape)
    ]


def test_what_makes_a_view_not_contiguous() -> None:
    for view in ("strided", "padded", "transposed", "permuted", "expanded", "repeated"):
        assert not allocate((3, 4), "float32", view).view.flags.c_contiguous, view
    assert spec_of_plan(TensorPlan((3, 4), "float32", None, "offset")).offset == 3
    assert allocate((3, 4), "float32", "transposed").view.T.flags.c_contiguous
    assert allocate((2, 3, 4), "float32", "permuted").view.flags.f_contiguous


@pytest.mark.parametrize("dtype", DTYPE_NAMES)
def test_guards_of_inputs_are_loud(dtype: str) -> None:
    plan = TensorPlan((3, 4), dtype, {"gen": "constant", "value": 1}, "strided")
    buffer = make_buffer(plan, "case", "p", 0)
    outside = np.ones(buffer.base.size, bool)
    outside[_places(buffer.view, buffer.base)] = False
    rest = buffer.base[outside]
    assert rest.size >= 2 * GUARD_BYTES // buffer.base.itemsize + 12
    if DTYPES[dtype].kind == "float":
        assert np.isnan(rest.astype(np.float64)).all()
    else:
        assert not rest.any()


def test_outputs_whose_elements_share_memory_are_known() -> None:
    for shape, view in FITTING:
        places = _places(allocate(shape, "uint8", view).view, allocate(shape, "uint8", view).base)
        shared = len(set(places)) < len(places)
        assert not shared or shares_elements(shape, view), (shape, view)
    for view, shared in (("as:4,1@0/8", False), ("as:1,1@0/4", True), ("as:0,1@0/3", True), ("as:1,2@0/6", False)):
        assert shares_elements((2, 3), view) is shared, view
    assert shares_elements((3, 4), "expanded")
    assert shares_elements((3, 4), "repeated+2")
    assert not any(shares_elements((3, 4), v) for v in ("padded", "transposed", "strided:3", "permuted", "offset"))


ERRORS = [
    ((3,), "as:1,1@0/9", "2 strides"), ((3,), "as:2@0/4", "ends at element 5 of 4"), ((3,), "as:2", "write as:"),
    ((3,), "diagonal", "unknown view"), ((3,), "contiguous:1", "takes no number"),
    ((3,), "strided:x", "not an integer"), ((3,), "strided:1", "too small"), ((3,), "offset:0", "too small"),
    ((3, 4), "padded:-1", "too small"), ((3,), "transposed", "needs rank 2"), ((), "strided", "needs rank 1"),
    ((3, 4), "expanded:2", "no such axis"), ((3,), "strided+0", "write NAME\\+K"),
    ((3,), "strided+x", "write NAME\\+K"), ((3,), "offset:3+2", "write NAME\\+K"),
    ((3,), "contiguous+2", "write NAME\\+K"), ((3,), "diagonal+2", "unknown view"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "view", "says"), ERRORS)
def test_impossible_views(shape: tuple[int, ...], view: str, says: str) -> None:
    with pytest.raises(OracleError, match=says):
        arrange(shape, view)
