"""Infinities, NaN, signed zeros and the clamp: the tables of the operators' pages."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from ordinary import in_full_alone
from truth import TYPES

import oracle
from oracle.numerics.floats.rounding import round_to

INF, NAN = np.inf, np.nan
EPS = float(np.float32(1e-12))


def same(actual, expected) -> bool:
    """Return whether values are equal, NaN to NaN, and zeros have the same sign."""
    a, b = np.asarray(actual).astype(np.float64), np.asarray(expected, np.float64)
    return bool(np.array_equal(a, b, equal_nan=True) and np.array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0])))


def array(values, dtype="float32"):
    return np.asarray(values).astype(TYPES[dtype])


def sigmoid(g, x, dtype="float32"):
    x = array(x, dtype)
    g = np.broadcast_to(array(g, dtype), x.shape)
    return oracle.golden("aclnnLogSigmoidBackward", gradOutput=g, self=x, buffer=np.empty(0, TYPES[dtype]))["gradInput"]


def cross_entropy(g, x, y, dtype="float32", **more):
    g, x, y = (array(t, dtype) for t in np.broadcast_arrays(g, x, y))
    return oracle.golden("aclnnBinaryCrossEntropyBackward", gradOutput=g, self=x, target=y, **{"reduction": 0, **more})[
        "out"
    ]


def softmax(g, y, dtype="float32", **more):
    return oracle.golden(
        "aclnnSoftmaxBackward", gradOutput=array(g, dtype), output=array(y, dtype), **{"dim": -1, **more}
    )["out"]


def nll(g, w, total=1.0, *, reduction=0, target=(0,), ignore=-100, dtype="float32"):
    w = array(w, dtype)
    return oracle.golden(
        "aclnnNLLLossBackward", gradOutput=array(g, dtype), self=np.full((len(target), w.size), NAN).astype(w.dtype),
        target=np.array(target, np.int64), weight=w, reduction=reduction, ignoreIndex=ignore,
        totalWeight=array([total], dtype),
    )["out"]  # fmt: skip


@pytest.mark.parametrize("dtype", list(TYPES))
class TestLogSigmoid:
    def test_special_values(self, dtype):
        assert same(sigmoid(1.0, [0.0, -0.0, INF, -INF, NAN], dtype), [0.5, 0.5, 0, 1, NAN])
        assert same(sigmoid([INF, -INF, NAN, INF, -INF], [0, 0, 0, INF, -INF], dtype), [INF, -INF, NAN, NAN, -INF])
        assert same(sigmoid([0.0, -0.0, -1.0, 1.0], [3, 3, INF, INF], dtype), [0.0, -0.0, -0.0, 0.0])

    def test_the_tail_is_not_flushed(self, dtype):
        if dtype != "float16":
            assert float(sigmoid(1.0, [100.0], dtype)[0]) == pytest.approx(np.exp(-100.0), rel=0.01)
        assert same(sigmoid(-1.0, [300.0], dtype), [-0.0])


class TestBinaryCrossEntropy:
    def test_special_values(self):
        for g, x, y, expected in (
            (1, [0, 1], [1, 0], np.float32([-1 / EPS, 1 / EPS])),  # the clamp
            (1, [2, -1], 0.5, np.float32([1.5 / EPS, -1.5 / EPS])),
            ([1, 1, -1], [0, 1, 1], [0, 1, 1], [0.0, 0.0, -0.0]),  # zero over the clamp
            (1, [NAN, INF, -INF], 0, [NAN, INF, -INF]),
            ([0.0, INF], [INF, 0.5], [0, 0.5], [NAN, NAN]),
        ):
            assert same(cross_entropy(g, x, y), expected), (g, x, y)

    def test_float16_overflows_to_infinity_and_bfloat16_rounds(self):
        assert same(cross_entropy(1, [0, 1], [1, 0], "float16"), [-INF, INF])
        assert same(cross_entropy(1, [0], [1], "bfloat16"), [-1000727379968.0])

    def test_mean_divides_by_the_exact_count_and_sum_by_nothing(self):
        x = np.full((3, 5), 0.3)
        none = cross_entropy(1.0, x, 0.5)
        assert same(cross_entropy(1.0, x, 0.5, reduction=2), none)
        assert np.allclose(cross_entropy(1.0, x, 0.5, reduction=1) * 15, none, rtol=2e-7)  # two roundings to float32

    def test_an_absent_weight_is_a_weight_of_one(self):
        x, y = np.linspace(0, 1, 9), np.linspace(1, 0, 9)
        assert same(cross_entropy(2.0, x, y), cross_entropy(2.0, x, y, weightOptional=np.ones((), np.float32)))


@pytest.mark.parametrize(
    ("g", "y", "expected"),
    [
        ([2.0], [1.0], [0.0]),  # equal terms cancel to +0
        ([-2.0], [1.0], [0.0]),
        ([1.0, -1.0, 1.0], [0.0, 0.0, 1.0], [0.0, -0.0, 0.0]),  # g y - s y with y = 0: (+-0) - (+-0)
        ([1.0, -1.0, -1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]),
        ([[1, NAN, 2], [1, 2, 3]], [[0.25, 0.25, 0.5]] * 2, [[NAN] * 3, [-0.3125, -0.0625, 0.375]]),  # its row alone
        ([INF, 1.0], [0.5, 0.5], [NAN, -INF]),
        ([INF, 1.0], [0.0, 1.0], [NAN, NAN]),
        ([1.0, 1.0], [INF, 0.5], [NAN, -INF]),
    ],
)
def test_softmax(g, y, expected):
    assert same(softmax(g, y), expected)


class TestNLLLoss:
    def test_zero_products_are_minus_zero_for_a_positive_gradient(self):
        assert same(nll([1.0, -1.0, 0.0], [0.0, 5.0], target=(0, 0, 1)), [[-0.0, 0], [0.0, 0], [0, -0.0]])

    def test_total_weight_divides_mean_only(self):
        for reduction, expected in ((1, -INF), (2, -2.0)):
            assert same(nll([1.0], [2.0], 0.0, reduction=reduction), [[expected]])
        assert same(nll([1.0], [2.0], -4.0, reduction=1), [[0.5]])
        assert same(nll([0.0], [2.0], 0.0, reduction=1), [[NAN]])
        assert same(nll([1.0], [2.0], NAN, reduction=1), [[NAN]])
        assert same(nll([1.0], [2.0], NAN, reduction=0), [[-2.0]])

    def test_other_classes_and_ignored_rows_are_plus_zero_whatever_the_operands_hold(self):
        out = nll([INF, 1.0], [NAN, 2.0], 0.0, target=(0, 1), ignore=0)
        assert same(out, [[0, 0], [0, -2.0]])

    @pytest.mark.parametrize("ignore", [-5, 2, 3, 2**32 + 1, -(2**63), 2**63 - 1])
    def test_ignore_index_may_be_anything(self, ignore):
        out = nll([1.0, 1.0], [1.0, 2.0, 3.0], target=(1, ignore), ignore=ignore)
        assert same(out, [[0, -2.0, 0], [0, 0, 0]])

    @pytest.mark.parametrize("target", [3, -1, 2**40])
    def test_a_target_that_is_no_class_is_refused(self, target):
        with pytest.raises(oracle.OracleError, match=rf"target\[1\] is {target}.*ignoreIndex"):
            nll([1.0, 1.0], [1.0, 2.0, 3.0], target=(0, target))


class TestShapesAndViews:
    def test_only_the_first_target_counts_for_one_dimensional_self(self):
        x = np.zeros(3, np.float32)
        out = oracle.golden(
            "aclnnNLLLossBackward", gradOutput=np.float32(2), self=x, target=np.array([1, 99, -7]),
            weight=np.float32([1, 2, 3]), reduction=0, ignoreIndex=-100, totalWeight=np.float32([1]),
        )["out"]  # fmt: skip
        assert same(out, [0, -4, 0])

    @pytest.mark.parametrize("dtype", [*TYPES, ">f4", ">f2"])
    def test_any_view_and_byte_order_gives_the_same_bytes(self, dtype):
        kind = np.dtype(TYPES.get(dtype, dtype))
        r = np.random.default_rng(3)
        base_g, base_y = (r.uniform(size=(12, 14, 6)).astype(kind) for _ in range(2))
        for view in (
            lambda a: a.T, lambda a: a[::2, ::-1], lambda a: a[3:, :, 2:3],
            lambda a: np.broadcast_to(a[:1], (5, 14, 6)), lambda a: np.asfortranarray(a),
            lambda a: a[0, 0, 0], lambda a: a[1, 1], lambda a: a[:0],
        ):  # fmt: skip
            g, y = view(base_g), view(base_y)
            plain_g, plain_y = (np.ascontiguousarray(t, kind.newbyteorder("=")).reshape(t.shape) for t in (g, y))
            for dim in range(-max(1, g.ndim), max(1, g.ndim)):
                got = oracle.golden("aclnnSoftmaxBackward", gradOutput=g, output=y, dim=dim)["out"]
                want = oracle.golden("aclnnSoftmaxBackward", gradOutput=plain_g, output=plain_y, dim=dim)["out"]
                assert got.shape == g.shape
                assert got.tobytes() == want.tobytes()
            for op, more in (
                ("aclnnLogSigmoidBackward", {"self": (y, plain_y), "buffer": (y, y)}),
                (
                    "aclnnBinaryCrossEntropyBackward",
                    {"self": (y, plain_y), "target": (g, plain_g), "reduction": (1, 1)},
                ),
            ):
                both = [
                    oracle.golden(op, gradOutput=grad, **{k: v[i] for k, v in more.items()})
                    for i, grad in enumerate((g, plain_g))
                ]
                (got,), (want,) = (list(b.values()) for b in both)
                assert got.tobytes() == want.tobytes()

    def test_inputs_are_only_read(self):
        x = np.ones((4, 4), np.float32)
        x.flags.writeable = False
        sigmoid(x, x)

    def test_out_may_be_a_dtype_a_spec_or_an_array(self):
        x = np.linspace(0.1, 0.9, 6, dtype=np.float32)
        for out in (
            "bfloat16",
            ml_dtypes.bfloat16,
            oracle.TensorSpec((6,), "bfloat16"),
            np.empty(6, ml_dtypes.bfloat16),
        ):
            assert cross_entropy(1.0, x, 0.0, out=out).dtype == ml_dtypes.bfloat16

    @pytest.mark.parametrize("dtype", TYPES)
    def test_the_host_rounds_to_the_promoted_type_before_the_cast(self, dtype):
        operands = np.random.default_rng(7).uniform(0.1, 0.9, (3, 1000))
        promoted = cross_entropy(*operands, dtype).astype(np.float64)
        for out in TYPES:
            assert np.array_equal(cross_entropy(*operands, dtype, out=out), round_to(promoted, out))
        for out in ("float32", "float64", "complex64"):
            assert np.array_equal(softmax(*operands[:2], dtype, out=out), softmax(*operands[:2], dtype).astype(out))


class TestWrongCalls:
    @staticmethod
    def refused(op, /, *words, **params):
        with pytest.raises(oracle.OracleError) as caught:
            oracle.golden(op, **params)
        for word in words:
            assert word in str(caught.value)
        assert isinstance(caught.value, ValueError)

    def test_each_names_operator_parameter_value_and_rule(self):
        x, h = np.ones((2, 3), np.float32), np.ones((2, 3), np.float16)
        op = "aclnnSoftmaxBackward"
        self.refused("aclnnSoftmaxBackwards", "aclnnSoftmaxBackward")
        self.refused(op, "axis", "dim", gradOutput=x, output=x, axis=0)
        self.refused(op, op, "dim is 2", "[-2, 1]", gradOutput=x, output=x, dim=2)
        self.refused(op, op, "output", "float16", "float32", gradOutput=x, output=h, dim=0)
        self.refused(op, op, "(3, 2)", gradOutput=x, output=x.T, dim=0)
        self.refused(op, op, "gradOutput", gradOutput=None, output=x, dim=0)
        self.refused(op, op, "int32", gradOutput=x, output=x, dim=0, out="int32")
        self.refused(op, "out", "float99", gradOutput=x, output=x, dim=0, out="float99")
        self.refused(op, op, "TensorSpec", gradOutput=oracle.TensorSpec((2, 3), "float32"), output=x, dim=0)
        self.refused(op, "list", gradOutput=[1.0], output=x, dim=0)
        self.refused(op, op, "dim", gradOutput=x, output=x)

    def test_what_the_checks_refuse_and_what_stays_unwritten_has_no_golden(self):
        for dtype in (np.float64, np.int32, bool, np.complex64):
            x = np.ones(3, dtype)
            self.refused("aclnnLogSigmoidBackward", np.dtype(dtype).name, gradOutput=x, self=x, buffer=x)
        x = np.ones(3, ml_dtypes.bfloat16)
        self.refused("aclnnLogSigmoidBackward", "ascend910", gradOutput=x, self=x, buffer=x, soc="ascend910")
        empty, out = np.empty((2, 0), np.float32), oracle.TensorSpec((2, 3), "float32")
        self.refused("aclnnSoftmaxBackward", "unwritten", gradOutput=empty, output=empty, dim=0, out=out)


ONE_NAN = {"float16": 0x7E00, "bfloat16": 0x7FC0, "float32": 0x7FC00000}


@pytest.mark.parametrize("dtype", list(TYPES))
class TestEveryNan:
    """A golden's NaN has the bits of np.nan on every machine, from any source."""

    def bits(self, golden) -> set[int]:
        return {int(code) for code in golden[np.isnan(golden)].view(f"u{golden.itemsize}")}

    def test_that_arithmetic_makes(self, dtype):
        assert self.bits(sigmoid([INF, 1.0], [INF, 0.0], dtype)) == {ONE_NAN[dtype]}
        assert self.bits(cross_entropy(INF, 0.5, 0.5, dtype)) == {ONE_NAN[dtype]}
        assert self.bits(softmax([INF, -INF, 1], [1, 1, 1], dtype)) == {ONE_NAN[dtype]}
        assert self.bits(nll([[INF]][0], [0.0, 1.0], dtype=dtype)) == {ONE_NAN[dtype]}

    def test_that_comes_from_an_input(self, dtype):
        word = np.dtype(f"u{np.dtype(TYPES[dtype]).itemsize}")
        sign, quiet = 1 << (8 * word.itemsize - 1), ONE_NAN[dtype]
        codes = np.array([quiet, quiet | sign, quiet | 5, quiet ^ (quiet & -quiet) | 1], word)  # the last one signals
        x = codes.view(TYPES[dtype])
        assert self.bits(sigmoid(1.0, x, dtype)) == {quiet}
        assert self.bits(cross_entropy(1.0, x, 0.5, dtype)) == {quiet}
        assert self.bits(softmax(np.ones(4), x, dtype)) == {quiet}
        assert self.bits(nll([1.0], x, dtype=dtype)) == {quiet}

    @in_full_alone
    def test_that_goes_through_the_compiled_engine(self, dtype, monkeypatch):
        pytest.importorskip("numba")
        monkeypatch.setenv("ACLNN_ORACLE_ENGINE", "compiled")
        assert self.bits(sigmoid([INF, 1.0], [INF, NAN], dtype)) == {ONE_NAN[dtype]}

    def test_that_is_cast_to_another_type(self, dtype):
        g, x = array([INF, 1.0], dtype), array([INF, -NAN], dtype)
        for out, quiet in {**ONE_NAN, "float64": 0x7FF8 << 48, "complex64": ONE_NAN["float32"]}.items():
            result = oracle.golden("aclnnSoftmaxBackward", gradOutput=g, output=x, dim=0, out=out)["out"]
            assert self.bits(np.ascontiguousarray(result.real)) == {quiet}
