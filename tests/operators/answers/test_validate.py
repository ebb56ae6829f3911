"""GetWorkspaceSize's answer, rule by rule and SoC by SoC: the tables of the sources, not examples."""

from __future__ import annotations

import itertools
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import oracle
from oracle import OracleError, TensorSpec
from oracle.defects.base.queries import call_of, checks_of
from oracle.model.aclnn import NEWEST, PLATFORMS, cann_of
from oracle.model.call import FORMAT_ENUM
from oracle.model.dtypes import DTYPES
from oracle.operators import OPERATORS
from oracle.operators.definition.checks import check, max_rank, same_dtype, source_only

SOCS = tuple(PLATFORMS)
NULL, INVALID, OK = 161001, 161002, 0
BCE, NLL, SOFTMAX, SIGMOID = (
    "aclnnBinaryCrossEntropyBackward",
    "aclnnNLLLossBackward",
    "aclnnSoftmaxBackward",
    "aclnnLogSigmoidBackward",
)
T = TensorSpec


def right(op: str, dtype: str = "float32") -> dict:
    """Return a call that every SoC accepts (for float32 and float16)."""
    t = T((4, 3), dtype)
    return {
        BCE: {"gradOutput": t, "self": t, "target": t, "weightOptional": t, "reduction": 0, "out": t},
        NLL: {
            "gradOutput": T((4,), dtype), "self": t, "target": T((4,), "int64"), "weight": T((3,), dtype),
            "reduction": 0, "ignoreIndex": -100, "totalWeight": T((1,), dtype), "out": t,
        },
        SOFTMAX: {"gradOutput": t, "output": t, "dim": -1, "out": t},
        SIGMOID: {"gradOutput": t, "self": t, "buffer": t, "gradInput": t},
    }[op]  # fmt: skip


OPS = (BCE, NLL, SOFTMAX, SIGMOID)
TENSORS = {op: [n for n, v in right(op).items() if isinstance(v, TensorSpec)] for op in OPS}
OUTPUT = {BCE: "out", NLL: "out", SOFTMAX: "out", SIGMOID: "gradInput"}


def code(op: str, soc: str = "ascend910b", **changes) -> int:
    return oracle.validate(op, soc=soc, **{**right(op), **changes}).code


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("op", OPS)
class TestEveryOperator:
    def test_a_right_call_succeeds(self, op, soc):
        for dtype in ("float16", "float32"):
            assert oracle.validate(op, soc=soc, **right(op, dtype)).ok

    def test_bfloat16_is_accepted_where_the_product_has_it(self, op, soc):
        status = oracle.validate(op, soc=soc, **right(op, "bfloat16"))
        assert status.code == (OK if PLATFORMS[soc].bfloat16 else INVALID)
        assert status.ok or "bfloat16" in status.reason

    def test_null_tensors(self, op, soc):
        for name in TENSORS[op]:
            expected = OK if name == "weightOptional" else NULL
            status = oracle.validate(op, soc=soc, **{**right(op), name: None})
            assert status.code == expected
            assert status.ok or name in status.reason

    def test_a_tensor_left_out_is_a_null_pointer(self, op, soc):
        for name in TENSORS[op]:
            call = {k: v for k, v in right(op).items() if k != name}
            assert oracle.validate(op, soc=soc, **call).code == code(op, soc, **{name: None})

    def test_null_out_parameters_come_before_everything(self, op, soc):
        for name in ("workspaceSize", "executor"):
            assert code(op, soc, **{name: None, TENSORS[op][0]: None}) == NULL
            assert name in oracle.validate(op, soc=soc, **{**right(op), name: None}).reason

    def test_every_other_dtype_is_refused_everywhere(self, op, soc):
        allowed = {"float16", "float32", "bfloat16"}
        for name, dtype in itertools.product(TENSORS[op], DTYPES):
            if dtype in allowed or name in ("buffer", "target") or (op in (NLL, SOFTMAX) and name == "out"):
                continue
            spec = right(op)[name]
            assert code(op, soc, **{name: T(spec.shape, dtype)}) == INVALID, (name, dtype)

    def test_the_output_must_have_the_shape_of_the_input(self, op, soc):
        for shape in ((4, 4), (4,), (1, 4, 3), (12,), ()):
            assert code(op, soc, **{OUTPUT[op]: T(shape, "float32")}) == INVALID

    def test_views_and_arrays_are_the_same_to_it(self, op, soc):
        call = {k: np.zeros(v.shape, v.dtype.numpy).T.copy().T if isinstance(v, T) else v for k, v in right(op).items()}
        assert oracle.validate(op, soc=soc, **call).ok


def each(name: str, *shapes: tuple[int, ...], dtype: str = "float32") -> list[dict]:
    """Return changes of one tensor to the shapes."""
    return [{name: T(shape, dtype)} for shape in shapes]


def alike(names: tuple[str, ...], shape: tuple[int, ...], dtype: str = "float32") -> dict:
    return dict.fromkeys(names, T(shape, dtype))


LOSS = ("gradOutput", "self", "target", "weightOptional", "out")
PLAIN, READ = ("gradOutput", "self", "gradInput"), ("gradOutput", "output", "out")
BROADCAST = ("gradOutput", "target", "weightOptional")
FORMATS = [T((4, 3), "float32", format=name) for name in FORMAT_ENUM]
OTHER_FORMATS = [spec for spec in FORMATS if spec.format != "ND"]
INTEGERS = {n for n, d in DTYPES.items() if d.kind in ("int", "uint", "bool")} - {"int4", "uint1"}  # not CanCast's
NOTHING = {"self": T((0, 3), "float32"), "target": T((5,), "float32"), "gradOutput": T((9, 9), "float32")}
VECTOR = {**alike(("self", "out"), (3,)), "gradOutput": T((), "float32")}
NO_ROW = {**alike(("self", "out"), (0, 3)), "gradOutput": T((0,), "float32")}
HALVES, AXES = ("float16", "float32"), range(-10, 11)
OF_SAMPLES, OF_ONE = ((4,),), ((1,), ())
GRADIENTS = (*OF_SAMPLES, *OF_ONE, (4, 1), (1, 1), (3,), (0,))
# A right call's changes that are right too, and changes that are refused.
RULES: dict[str, tuple[str, list[dict], list[dict]]] = {
    "dtypes are promoted": (
        BCE,
        [dict(zip(LOSS, specs, strict=True)) for specs in itertools.product([T((4, 3), d) for d in HALVES], repeat=5)],
        [],
    ),
    "a reduction is 0, 1 or 2": (
        BCE, [{"reduction": v} for v in (0, 1, 2)], [{"reduction": v} for v in (-1, 3, 2**62)],
    ),
    "operands broadcast to self only": (
        BCE,
        [c for n in BROADCAST for c in each(n, (4, 3), (3,), (1,), (), (1, 3), (4, 1), (1, 1))],
        [c for n in BROADCAST for c in each(n, (1, 4, 3), (4,), (2, 3), (1, 1, 1), (0,), (4, 3, 1))],
    ),
    "a scalar self takes scalars only": (
        BCE, [alike(LOSS, ())], [{**alike(LOSS, ()), n: T((1,), "float32")} for n in LOSS if n != "self"],
    ),
    "the formats of target and weight are self's": (
        BCE,
        [dict.fromkeys(names, s) for s in FORMATS for names in (LOSS[1:4], ("gradOutput", "out"))],
        [{n: s} for s in OTHER_FORMATS for n in ("target", "weightOptional")],
    ),
    "an empty self skips shapes but not the reduction": (BCE, [NOTHING], [{**NOTHING, "reduction": 3}]),
    "floats are of self's dtype": (
        NLL, [], [{n: T(right(NLL)[n].shape, "float16")} for n in ("gradOutput", "weight", "totalWeight")],
    ),
    "a target's dtypes": (
        NLL,
        [{"target": T((4,), d)} for d in ("int64", "int32", "uint8")],
        [{"target": T((4,), d)} for d in DTYPES if d not in ("int64", "int32", "uint8")],
    ),
    "out takes whatever self can be cast to": (
        NLL, [{"out": T((4, 3), d)} for d in DTYPES if d not in INTEGERS], [{"out": T((4, 3), d)} for d in INTEGERS],
    ),
    "a gradient per sample": (
        NLL, each("gradOutput", *OF_SAMPLES), each("gradOutput", *(s for s in GRADIENTS if s not in OF_SAMPLES)),
    ),
    **{
        f"one gradient of reduction {r}": (
            NLL,
            [c | {"reduction": r} for c in each("gradOutput", *OF_ONE)],
            [c | {"reduction": r} for c in each("gradOutput", *(s for s in GRADIENTS if s not in OF_ONE))],
        )
        for r in (1, 2)
    },
    "one-dimensional self": (
        NLL,
        [
            *(VECTOR | c for c in each("target", (), (3,), dtype="int64")),
            {**alike(("self", "out", "weight", "gradOutput"), (1,)), "target": T((1,), "int64")},
        ],
        [VECTOR | c for c in each("target", (1,), (2,), (1, 1), dtype="int64")],
    ),
    "a target of rank 0 reads as length 0": (
        NLL, [{**NO_ROW, "target": T((), "int64")}], each("target", (), dtype="int64"),
    ),
    "a weight per class": (NLL, [], each("weight", (4,), (1,), (), (1, 3), (3, 1))),
    "a total of one element": (
        NLL, each("totalWeight", (1,), (), (1, 1), (1,) * 12), each("totalWeight", (2,), (0,), (1, 2)),
    ),
    "self is of rank 1 or 2": (NLL, [], [alike(("self", "out"), s) for s in ((), (1, 4, 3), (4, 3, 1, 1))]),
    "an ignored index is any int64": (
        NLL, [{"ignoreIndex": v} for v in (-(2**63), -1, 0, 2**32 + 3, 2**63 - 1)], [{"ignoreIndex": 2**63}],
    ),
    "a reduction of classes": (NLL, [], [{"reduction": r, "gradOutput": T((), "float32")} for r in (-1, 3)]),
    "dim lies in the rank": (
        SOFTMAX,
        [alike(READ, (2,) * k) | {"dim": d} for k in range(9) for d in AXES if -max(1, k) <= d < max(1, k)],
        [alike(READ, (2,) * k) | {"dim": d} for k in range(9) for d in AXES if not -max(1, k) <= d < max(1, k)],
    ),
    "a rank of at most 8": (SOFTMAX, [], [alike(READ, (1,) * 9) | {"dim": 0}]),
    "out has no rule of dtypes": (SOFTMAX, [{"out": T((4, 3), d)} for d in DTYPES], []),
    "output is like the gradient": (
        SOFTMAX, [], [{"output": T((4, 3), "float16")}, {"output": T((3, 4), "float32")}],
    ),
    "of a buffer null alone is asked": (
        SIGMOID, [{"buffer": T(s, d)} for d in DTYPES for s in ((), (0,), (9,), (1,) * 12)], [],
    ),
    "ranks have no limit": (SIGMOID, [alike(PLAIN, (1,) * rank) for rank in (0, 1, 8, 9, 20)], []),
    "dtypes and shapes are equal": (
        SIGMOID,
        [alike(PLAIN, (0,), "float16")],
        [change for n in PLAIN for change in ({n: T((4, 3), "float16")}, {n: T((3, 4), "float32")})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("soc", SOCS)
@pytest.mark.parametrize("rule", RULES)
def test_rules(rule: str, soc: str) -> None:
    op, good, bad = RULES[rule]
    assert [change for change in good if code(op, soc, **change) != OK] == []
    assert [change for change in bad if code(op, soc, **change) != INVALID] == []


@pytest.mark.parametrize("soc", SOCS)
def test_the_rank_of_a_loss_s_gradient_is_asked_of_out_alone(soc):
    nine = T((0,) + (1,) * 8, "float32")
    empty = dict.fromkeys(LOSS[:4], nine)
    assert code(BCE, soc, **empty, out=T((7,), "float32")) == OK
    assert code(BCE, soc, **empty, out=nine) == INVALID
    assert "rank" in oracle.validate(BCE, soc=soc, **{**right(BCE), **empty, "out": nine}).reason


@pytest.mark.parametrize("soc", SOCS)
def test_empty_input_succeeds_unchecked_except_on_ascend950_after_the_last_release(soc):
    empty = T((2, 0), "float32")
    odd = ({"dim": 7}, {"output": T((5,), "int8")}, {"out": T((2, 3), "float32")}, {"output": T((3,), "float32")})
    for change in odd:
        call = {"gradOutput": empty, "output": empty, "out": empty, "dim": 0, **change}
        for op in (SOFTMAX, "aclnnLogSoftmaxBackward"):
            for cann in (None, "8.5", "9.0", "9.1", "9.2"):
                assert oracle.validate(op, soc=soc, cann=cann, **call).code == OK
            after = oracle.validate(op, soc=soc, cann="master", **call).code
            assert after == (INVALID if soc == "ascend950" else OK)
    assert code(SOFTMAX, soc, gradOutput=empty, output=empty, out=empty, dim=1) == OK


class TestWhatRaisesAndWhatIsAnswered:
    def test_only_unknown_names_raise(self):
        with pytest.raises(OracleError, match="unknown operator 'aclnnSoftmaxForward'"):
            oracle.validate("aclnnSoftmaxForward")
        with pytest.raises(OracleError, match="'axis'"):
            oracle.validate(SOFTMAX, **right(SOFTMAX), axis=1)
        with pytest.raises(OracleError, match="ascend910b"):
            oracle.validate(SOFTMAX, soc="ascend999", **right(SOFTMAX))

    @pytest.mark.parametrize(
        ("op", "name", "values"),
        [
            (BCE, "reduction", (None, "mean", 1.0, 2**63, [0], np.float32(1), np.zeros(10**5))),
            (SIGMOID, "self", ([1, 2], 3.0, "x", b"x")),
            (SIGMOID, "self", [np.zeros((4, 3), kind) for kind in ("datetime64[s]", "O", "V4", "longdouble")]),
        ],
    )
    def test_a_value_that_no_argument_has_is_answered_in_short(self, op, name, values):
        for value in values:
            status = oracle.validate(op, **{**right(op), name: value})
            assert status.code == INVALID
            assert name in status.reason
            assert len(status.reason) < 200

    def test_numbers_that_c_has_not_and_masks_are_refused(self):
        x = np.ones(3, np.float32)
        given = {"gradOutput": x, "self": x, "selfIsResult": False}
        for change, says in (
            ({"negativeSlope": 10**400}, "negativeSlope is 1000"),
            ({"negativeSlope": 0.5, "self": np.ma.masked_array(x, x > 0)}, "self is a masked array"),
        ):
            with pytest.raises(OracleError, match=says):
                oracle.golden("aclnnLeakyReluBackward", **{**given, **change})
            assert says in oracle.validate("aclnnLeakyReluBackward", **{**given, "out": x, **change}).reason

    def test_reason_is_empty_only_for_success(self):
        assert oracle.validate(SIGMOID, **right(SIGMOID)).reason == ""
        assert oracle.validate(SIGMOID).name == "ACLNN_ERR_PARAM_NULLPTR"

    def test_negative_dims_are_compared_like_any_others(self):
        many, few = T((1,) * 9, "float32"), T((-1, -1), "float32")
        status = oracle.validate(SIGMOID, gradOutput=many, self=few, buffer=few, gradInput=few)
        assert status.code == INVALID
        assert "(-1, -1)" in status.reason
        assert code(SIGMOID, gradOutput=few, self=few, buffer=few, gradInput=few) == OK

    def test_an_unknown_version_of_cann_raises(self):
        with pytest.raises(OracleError, match=r"8\.5, 9\.0, 9\.1, 9\.2, master"):
            oracle.validate(SOFTMAX, cann="7.0", **right(SOFTMAX))
        assert [cann_of(text) for text in ("8.3.RC1", "8.5.1", "9.1.0", "9.2.0-beta.1", "9.3.0", "")] == [
            "8.5", "8.5", "9.1", "9.2", "master", NEWEST
        ]  # fmt: skip

    def test_a_golden_of_a_call_sees_what_validate_sees_of_it(self):
        a = np.full((4, 3), 0.5, np.float32)
        call = oracle.Call(BCE, "ascend910b", {"gradOutput": a, "self": a, "target": a, "weightOptional": None},
                           {"reduction": 0}, {"out": np.empty_like(a)})  # fmt: skip
        assert oracle.validate(call).ok
        assert oracle.golden(call)["out"].shape == (4, 3)
        call.specs = {"target": T((4, 3), "float32", format="NCHW")}
        assert oracle.validate(call).code == INVALID
        with pytest.raises(OracleError, match="format") as text:
            oracle.golden(call)
        assert len(str(text.value)) < 300
        call.specs, call.null = {}, frozenset({"executor"})
        assert oracle.validate(call).code == NULL
        empty = np.empty((2, 0), np.float32)
        call = oracle.Call(SOFTMAX, "ascend950", {"gradOutput": empty, "output": empty}, {"dim": 7}, {"out": empty})
        assert oracle.golden(call)["out"].shape == (2, 0)
        call.cann = "master"
        with pytest.raises(OracleError, match="dim is 7"):
            oracle.golden(call)


@pytest.mark.parametrize("kind", [float, np.float16, np.float64, np.int32, ml_dtypes.bfloat16])
def test_a_scalar_may_be_a_number_of_any_type(kind):
    x = np.float32([-1, 2])
    result, plain = (
        oracle.golden("aclnnSwishBackward", gradOutput=x, self=x, betaOptional=beta)["gradInput"]
        for beta in (kind(2), 2)
    )
    assert result.tobytes() == plain.tobytes()


@pytest.mark.parametrize(
    ("asks", "hint"),
    [
        (lambda a: max_rank(a, "slef"), r"'slef', which is no parameter of it \(did you mean 'self'\?\)"),
        (lambda a: same_dtype(a, "self", "weights"), "'weights', which is no parameter of it"),
        (lambda a: source_only(check("x", "x" if a["Buffer"] else None)), r"'Buffer'.*\(did you mean 'buffer'\?\)"),
    ],
)
def test_checks_that_ask_for_what_is_no_parameter_are_told_with_those_that_are(asks, hint, monkeypatch):
    page = replace(OPERATORS[SIGMOID], checks=lambda a, platform: iter([asks(a)]))
    monkeypatch.setitem(OPERATORS._found, SIGMOID, page)
    text = rf"^{SIGMOID}: its checks ask for {hint}; it has: gradOutput, self, buffer, gradInput$"
    with pytest.raises(OracleError, match=text):
        oracle.validate(SIGMOID, **right(SIGMOID))
    with pytest.raises(OracleError, match=text):
        list(checks_of(call_of(page, (4, 3))))


@pytest.mark.parametrize(
    ("op", "shapes", "attributes"),
    [
        ("aclnnSwiGlu", {"x": (4, 8), "out": (4, 4)}, {"dim": 1}),
        ("aclnnRmsNorm", {"x": (2, 4), "gamma": (4,), "yOut": (2, 4), "rstdOut": (2, 1)}, {"epsilon": 1e-6}),
    ],
)
def test_a_generated_interface_finds_no_row_for_other_formats(op, shapes, attributes):
    given = {name: TensorSpec(shape, "float32") for name, shape in shapes.items()}
    assert oracle.validate(op, **given, **attributes).ok
    for name, spec in given.items():
        for layout, wanted in (("FRACTAL_NZ", INVALID), ("HWCN", INVALID), ("NCHW", OK)):
            status = oracle.validate(
                op, **{**given, name: TensorSpec(spec.shape, "float32", format=layout)}, **attributes
            )
            assert status.code == wanted, (name, layout, status)


@pytest.mark.parametrize("soc", SOCS)
def test_the_dtype_of_a_bfloat16_scalar_is_looked_up(soc):
    """Like any other scalar's: products without bfloat16 refuse it (forward_elementwise.md, piecewise.md)."""
    wanted = OK if PLATFORMS[soc].bfloat16 else INVALID
    one, t = ml_dtypes.bfloat16(1), TensorSpec((2,), "float32")
    calls = [
        oracle.validate("aclnnHardtanh", soc=soc, self=t, clipValueMin=one, clipValueMax=2.0, out=t),
        oracle.validate(
            "aclnnLeakyReluBackward", soc=soc, gradOutput=t, self=t, negativeSlope=one, selfIsResult=False, out=t
        ),
    ]
    assert [status.code for status in calls] == [wanted, wanted]


@pytest.mark.parametrize(
    ("op", "given", "known"),
    [
        (
            "aclnnKlDiv",
            {"self": (2,), "target": (2,), "out": (1,), "reduction": 4, "logTarget": False},
            {"8.5": OK, "9.0": INVALID},
        ),
        (
            "aclnnSmoothL1Loss",
            {"self": (2,), "target": (2,), "result": (2,), "beta": 0.0, "reduction": 0},
            {"8.5": INVALID, "9.0": OK},
        ),
        (
            "aclnnLayerNorm",
            {"input": (2, 8), "normalizedShape": [8], "out": (2, 8), "meanOutOptional": (7,), "rstdOutOptional": (7,)},
            {"9.0": 561103, "9.1": INVALID},
        ),
    ],
)
def test_checks_of_2026_are_in_no_release_before(op, given, known):
    null = {"weightOptional": None, "biasOptional": None, "eps": 1e-5} if op == "aclnnLayerNorm" else {}
    call = {n: TensorSpec(v, "float32") if isinstance(v, tuple) else v for n, v in given.items()} | null
    answers = {cann: oracle.validate(op, soc="ascend950", cann=cann, **call).code for cann in known}
    assert answers == known


def test_a_weight_of_rank_0_reads_as_one_for_no_class():
    """forward.md: the host reads the missing axis as 0."""
    for classes, wanted in ((0, OK), (1, INVALID)):
        x, t = TensorSpec((2, classes, 4, 5), "float32"), TensorSpec((2, 4, 5), "int64")
        out, one = TensorSpec((2, 4, 5), "float32"), TensorSpec((1,), "float32")
        status = oracle.validate(
            "aclnnNLLLoss2d", self=x, target=t, weight=TensorSpec((), "float32"), reduction=0, ignoreIndex=-100,
            out=out, totalWeightOut=one,
        )  # fmt: skip
        assert status.code == wanted


def test_rms_norm_grad_has_rows_of_64_on_ascend910_and_nan_without_rows_on_ascend950():
    for columns, wanted in ((16, 561002), (64, OK)):
        x, w, r = (TensorSpec(shape, "float32") for shape in ((2, columns), (columns,), (2,)))
        given = {"dy": x, "x": x, "rstd": r, "gamma": w, "dxOut": x, "dgammaOut": w}
        assert oracle.validate("aclnnRmsNormGrad", soc="ascend910", **given).code == wanted
    x, w, r = (np.ones(shape, np.float32) for shape in ((0, 4), (4,), (0,)))
    result = oracle.golden("aclnnRmsNormGrad", soc="ascend950", dy=x, x=x, rstd=r, gamma=w)
    assert np.isnan(result["dgammaOut"]).all()
