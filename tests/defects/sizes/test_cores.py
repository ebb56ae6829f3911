"""Kernels that need two sizes at once are right on tensors that lack either, and wrong just beyond both."""

from __future__ import annotations

import numpy as np
import pytest
from ordinary import in_full_alone, one_of_each_kind, some

from oracle.defects import defects
from oracle.defects.base.device import plain
from oracle.defects.base.elementwise import Where
from oracle.defects.sizes.cores import (
    ROWS as BY_ROWS,
    _before_the_last,
    _by_rows,
    _classes_lost,
    _later_columns,
    _stale_factor,
    _stale_result,
    later_rows,
    share_of,
    two_before,
)
from oracle.defects.sizes.corners import HALF_WORD, wrapped
from oracle.defects.sizes.lost_parts import tail
from oracle.model.aclnn import platform
from oracle.model.call import Call
from oracle.numerics.orders.reducing import reduces
from oracle.operators import OPERATORS

SOC = platform("ascend910b")
NLL, SOFTMAX = OPERATORS["aclnnNLLLossBackward"], OPERATORS["aclnnSoftmaxBackward"]
rng = np.random.Generator(np.random.Philox(7))


def softmax_of(*shape, dim=-1):
    gradient, output = (rng.uniform(*ends, shape).astype(np.float32) for ends in ((0.5, 1), (0.1, 0.9)))
    return {"gradOutput": gradient, "output": output, "dim": dim}


def loss_of(rows, classes, reduction=0):
    return {
        "self": np.zeros((rows, classes), np.float32), "target": np.full(rows, classes - 1),
        "gradOutput": np.ones(rows if reduction == 0 else 1, np.float32), "weight": np.ones(classes, np.float32),
        "totalWeight": np.full(1, 3, np.float32), "reduction": reduction, "ignoreIndex": -100,
    }  # fmt: skip


def differs(kernel, op, arguments):
    return bool((kernel(arguments, SOC) != plain(op)(arguments, SOC)).any())


@pytest.mark.parametrize("cores", [1, 7, 8, 48])
@pytest.mark.parametrize("count", [1, 48, 49, 1000])
def test_shares_hold_every_row_and_each_core_has_one_first_row(count, cores):
    share = share_of(count, cores)
    assert (share - 1) * cores < count <= share * cores
    assert (~later_rows(count, cores)).sum() == -(-count // share) <= cores


@pytest.mark.parametrize(("cores", "tile"), [(1, 32), (3, 40), (8, 64)])
def test_a_stale_element_lies_two_tiles_before_in_the_same_share(cores, tile):
    count = 1999
    index, at, share = two_before(count, cores, tile), np.arange(count), share_of(count, cores, 32)
    assert set(np.unique(at - index)) == {0, 2 * tile}
    assert (index // share == at // share).all()
    assert ((index == at) == (at % share < 2 * tile)).all()


@pytest.mark.parametrize("label", BY_ROWS)
def test_softmax_rows_need_more_rows_than_cores_and_more_terms_than_tiles(label):
    change, tiles, _, _ = BY_ROWS[label]
    kernel = _by_rows(SOFTMAX, change, 5, 8, tiles)
    few, short, first, enough = (5, 8 * tiles + 1), (6, 8 * tiles), (8 * tiles + 1, 6), (6, 8 * tiles + 1)
    assert not differs(kernel, SOFTMAX, softmax_of(*few))
    assert not differs(kernel, SOFTMAX, softmax_of(*short))
    assert not differs(kernel, SOFTMAX, softmax_of(*first, dim=0))
    assert differs(kernel, SOFTMAX, softmax_of(*enough))
    given = softmax_of(*enough)
    wrong = (kernel(given, SOC) != plain(SOFTMAX)(given, SOC)).any(axis=1)
    assert not (wrong & ~later_rows(6, 5)).any(), "a core's first row is right"


@pytest.mark.parametrize("lost", [_before_the_last, tail])
def test_later_columns_need_both_tiles(lost):
    kernel = _later_columns(SOFTMAX, 4, lost, "first", 8)
    assert not differs(kernel, SOFTMAX, softmax_of(9, 4, dim=0))
    assert not differs(kernel, SOFTMAX, softmax_of(8, 5, dim=0))
    assert not differs(kernel, SOFTMAX, softmax_of(2, 9, 5, dim=1))
    given = softmax_of(9, 5, dim=0)
    wrong = (kernel(given, SOC) != plain(SOFTMAX)(given, SOC)).any(axis=0)
    assert wrong.tolist() == [False] * 4 + [True]
    middle = _later_columns(SOFTMAX, 4, lost, "middle", 8)
    assert not differs(middle, SOFTMAX, given)
    assert differs(middle, SOFTMAX, softmax_of(2, 9, 5, dim=1))


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_lost_classes_need_more_rows_than_cores_and_more_classes_than_a_tile(reduction):
    kernel = _classes_lost(NLL, 4, 10, reduction)
    assert not differs(kernel, NLL, loss_of(4, 11, reduction))
    assert not differs(kernel, NLL, loss_of(5, 10, reduction))
    assert not differs(kernel, NLL, loss_of(5, 11, (reduction + 1) % 3))
    given = loss_of(5, 11, reduction)
    assert (kernel(given, SOC)[:, -1] == 0).tolist() == later_rows(5, 4).tolist()


def test_a_double_buffer_needs_a_third_tile_on_a_core():
    for kernel in (_stale_result(SOFTMAX, 4, 64), _stale_factor(SOFTMAX, "y", 4, 64)):
        assert not differs(kernel, SOFTMAX, softmax_of(4 * 128))
        assert differs(kernel, SOFTMAX, softmax_of(4 * 128 + 1))


@pytest.mark.parametrize("op", some(one_of_each_kind(OPERATORS), 4))
def test_no_kernel_of_several_tiles_is_wrong_on_a_small_tensor(op, prepared):
    """On the small stated inputs the plain kernel runs, or the operand is read as it is."""
    result = [d for d in defects(op) if d.id.startswith("counter/") or of_two_sizes(d.id)]
    assert result
    for case in prepared(op):
        call = case.memory.call
        if not all(isinstance(v, np.ndarray | type(None)) for v in call.inputs.values()):
            continue
        for d in result:
            assert not isinstance(d.device.kernel, Where) or not d.device.kernel.holds(call.arguments)
            assert all(reads_plainly(d, name, call) for name, v in call.inputs.items() if v is not None)


def of_two_sizes(id):
    return id.startswith("cores/") and " x " in id


def reads_plainly(defect, name, call: Call):
    return defect.device.read(name, call.inputs[name], call) is call.inputs[name]


@pytest.mark.parametrize("what", ["flat", "row", "column"])
def test_numbers_of_16_bits_wrap_beyond_65536_only(what):
    shape = {"flat": (HALF_WORD,), "row": (HALF_WORD, 1), "column": (1, HALF_WORD)}[what]
    assert wrapped(shape, what) is None
    assert wrapped((), what) is None
    longer = {"flat": (HALF_WORD + 2,), "row": (HALF_WORD + 2, 1), "column": (1, HALF_WORD + 2)}[what]
    index = wrapped(longer, what)
    assert index is not None
    assert index[:HALF_WORD].tolist() == list(range(HALF_WORD))
    assert index[HALF_WORD:].tolist() == [0, 1]


@in_full_alone
def test_every_operator_has_kernels_of_two_sizes():
    for op in one_of_each_kind(OPERATORS):
        # only some sizes are known for an operator of rank 4 alone, or one that halves or reduces an axis
        least = 8 if reduces(OPERATORS[op].computes) else 14
        assert sum(of_two_sizes(d.id) for d in defects(op)) >= least, op
