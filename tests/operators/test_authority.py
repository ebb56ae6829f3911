"""The authority of the pages' rules: rules that a document states, and refusals or acceptances of the host alone."""

from __future__ import annotations

from typing import Any

from oracle.model.aclnn import DOCUMENT, SOURCE, platform
from oracle.model.call import TensorSpec
from oracle.operators.answers.registry import operator
from oracle.operators.answers.validation import bound, decision

SOC = "ascend910b"


def f32(*shape: int) -> TensorSpec:
    return TensorSpec(shape, "float32")


def f16(*shape: int) -> TensorSpec:
    return TensorSpec(shape, "float16")


def refused_by(name: str, soc: str = SOC, **given: Any) -> str:
    """Return the authority for the refusal of a call."""
    result = decision(name, soc, None, given)
    assert result is not None
    assert result.status is not None
    assert not result.status.ok
    return result.authority


def accepted_by(name: str, **given: Any) -> str:
    """Return the authority for the acceptance of a call."""
    op, result = operator(name), decision(name, SOC, None, given)
    assert result is None or result.status is None or result.status.ok
    assert op.demands is not None
    demanded = op.demands(bound(op, given), platform(SOC))
    return SOURCE if any(check.status is not None for check in demanded) else DOCUMENT


def test_mishs_document_broadcasts_one_way_promotes_and_knows_no_empty_tensors() -> None:
    def authority(g: TensorSpec, x: TensorSpec, out: TensorSpec) -> str:
        return accepted_by("aclnnMishBackward", gradOutput=g, self=x, gradInput=out)

    assert authority(f16(3), f32(2, 3), f16(2, 3)) == DOCUMENT
    assert authority(f32(2, 3), f32(3), f32(2, 3)) == SOURCE
    assert authority(f32(0, 3), f32(0, 3), f32(0, 3)) == SOURCE


def test_mishs_document_excepts_ascend910_alone_from_bfloat16() -> None:
    narrow, wide = TensorSpec((3,), "bfloat16"), f32(3)
    for soc, authority in (("ascend910", DOCUMENT), ("ascend310p", SOURCE)):
        for given in ((narrow, wide, wide), (wide, narrow, wide), (wide, wide, narrow)):
            call = dict(zip(("gradOutput", "self", "gradInput"), given, strict=True))
            assert refused_by("aclnnMishBackward", soc, **call) == authority
    other = TensorSpec((3,), "int32")
    assert refused_by("aclnnMishBackward", "ascend310p", gradOutput=other, self=wide, gradInput=wide) == DOCUMENT


def test_log_softmaxs_document_allows_dim_to_be_the_rank_and_types_that_differ() -> None:
    def authority(soc: str = SOC, y: TensorSpec | None = None, dim: int = 0, kind: str = "float32") -> str:
        x = TensorSpec((2, 3), kind)
        return refused_by("aclnnLogSoftmaxBackward", soc, gradOutput=x, output=y or x, dim=dim, out=x)

    assert [authority(dim=dim) for dim in (2, 3, -3)] == [SOURCE, DOCUMENT, DOCUMENT]
    assert authority(y=f16(2, 3)) == SOURCE
    assert [authority("ascend910", kind=kind) for kind in ("bfloat16", "int32")] == [SOURCE, DOCUMENT]


def test_prelus_document_gives_the_weights_gradient_the_shape_of_the_weight() -> None:
    wide = {"gradOutput": f32(2, 3), "self": f32(2, 3), "gradInput": f32(2, 3), "weight": f32(1, 3)}
    assert refused_by("aclnnPreluBackward", **wide, gradWeight=f32(1, 3)) == SOURCE
    assert refused_by("aclnnPreluBackward", **wide, gradWeight=f32(3, 1)) == DOCUMENT
    assert accepted_by("aclnnPreluBackward", **wide, gradWeight=f32(3)) == SOURCE
    assert accepted_by("aclnnPreluBackward", **{**wide, "weight": f32(3)}, gradWeight=f32(3)) == DOCUMENT


def test_softpluss_document_broadcasts() -> None:
    def authority(g: TensorSpec) -> str:
        given = {"self": f32(2, 3), "beta": 1.0, "threshold": 20.0, "gradInput": f32(2, 3)}
        return refused_by("aclnnSoftplusBackward", gradOutput=g, **given)

    assert [authority(g) for g in (f32(3), f32(2))] == [SOURCE, DOCUMENT]


def test_thresholds_document_says_nothing_of_a_null_threshold_or_out_and_of_the_shape_of_out() -> None:
    given = {"gradOutput": f32(2, 3), "self": f32(3), "threshold": 1.0, "out": f32(2, 3)}
    for name, wanted in (("threshold", SOURCE), ("out", SOURCE), ("self", DOCUMENT), ("gradOutput", DOCUMENT)):
        assert refused_by("aclnnThresholdBackward", **{**given, name: None}) == wanted, name
    assert refused_by("aclnnThresholdBackward", **{**given, "out": f32(3)}) == SOURCE
    assert refused_by("aclnnThresholdBackward", **{**given, "self": f32(2)}) == DOCUMENT


def test_the_mean_squared_errors_document_lists_no_type_of_out() -> None:
    given = {"gradOutput": f32(3), "self": f32(3), "target": f32(3), "reduction": 0}
    double = TensorSpec((3,), "float64")
    assert refused_by("aclnnMseLossBackward", **given, out=double) == SOURCE
    twice = dict.fromkeys(("gradOutput", "self", "target", "out"), double)
    assert refused_by("aclnnMseLossBackward", reduction=0, **twice) == DOCUMENT


def test_the_documents_lists_of_types_and_ranks_are_theirs() -> None:
    f64, i32 = TensorSpec((3,), "float64"), TensorSpec((3,), "int32")
    l1 = "aclnnL1LossBackward"
    for (g, x, out), authority in (
        ((f16(3), f32(3), f16(3)), DOCUMENT),  # the document promotes
        ((f32(3), f32(3), f64), SOURCE),
        ((i32, f32(3), f32(3)), SOURCE),
        ((f32(), f32(), f32()), SOURCE),
    ):
        assert accepted_by(l1, gradOutput=g, self=x, target=x, reduction=0, gradInput=out) == authority
    for out, authority in ((f16(3), DOCUMENT), (f64, SOURCE)):
        assert accepted_by("aclnnHardsigmoidBackward", gradOutput=f32(3), self=f32(3), out=out) == authority
    for shape, authority in (((3,), DOCUMENT), ((), SOURCE)):
        same = dict.fromkeys(("gradOutput", "self", "target", "out"), f32(*shape))
        assert accepted_by("aclnnMseLossBackward", reduction=0, **same) == authority
        assert accepted_by("aclnnKlDivBackward", reduction=0, logTarget=False, **same) == authority
    for out, authority in ((f32(0, 4), DOCUMENT), (f32(7), SOURCE)):
        given = {"gradOutput": f32(0, 4), "self": f32(1, 4), "lambd": 0.5, "gradInput": out}
        assert accepted_by("aclnnHardshrinkBackward", **given) == authority
