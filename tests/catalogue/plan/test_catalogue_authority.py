"""The authority of each case, and the cases that --authority document omits."""

from __future__ import annotations

from dataclasses import replace

from ordinary import in_full_alone

from oracle.catalogue import default_dir, load
from oracle.catalogue.data.case import Case, TensorPlan
from oracle.catalogue.expand.ecosystem import Volume
from oracle.catalogue.plan.statuses import authority_of, demanded
from oracle.model.aclnn import authority_text
from oracle.operators import OPERATORS
from oracle.run.session import Run
from oracle.settings.settings import Settings

SOC = "ascend910b"


def logsigmoid(shape: tuple[int, ...] = (4, 3), **dtypes: str) -> Case:
    plans = {n: TensorPlan(shape, dtypes.get(n, "float32")) for n in ("gradOutput", "self", "buffer")}
    out = {"gradInput": TensorPlan(shape, dtypes.get("gradInput", "float32"))}
    return Case("x/y[z]", "aclnnLogSigmoidBackward", "y", "a test", "standard", "float32", plans, {}, out)


def test_a_call_that_only_the_source_accepts_is_the_sources() -> None:
    assert authority_of(logsigmoid(), SOC) == "document"
    assert authority_of(logsigmoid(buffer="int8"), SOC) == "source"
    assert authority_of(logsigmoid(()), SOC) == "source"
    assert authority_of(logsigmoid((1,) * 9), SOC) == "source"
    assert authority_of(logsigmoid(gradInput="float16"), SOC) == "document"  # both refuse it
    assert authority_of(replace(logsigmoid(), authority="device"), SOC) == "device"


def test_families_tell_of_the_rules_that_only_the_source_or_the_device_knows() -> None:
    cases = load(default_dir() / "binary_cross_entropy_backward.yaml")
    result = {case.id: authority_of(case, SOC) for case in cases if not case.soc or SOC in case.soc}
    assert set(result.values()) == {"document", "device", "source"}
    assert result["binary_cross_entropy_backward/clamp[float32-20x25-random_target]"] == "source"
    assert {v for k, v in result.items() if "/mixed_inputs[" in k} == {"source"}
    assert {v for k, v in result.items() if "/first_look[" in k or "/reduction_refused[" in k} == {"document"}
    kept = {case.id for case in demanded((c for c in cases if c.id in result), SOC)}
    assert kept == {name for name, authority in result.items() if authority != "source"}


def test_an_output_of_another_type_is_the_documents_error_and_the_sources_success() -> None:
    cases = [c for c in load(default_dir() / "nll_loss_backward.yaml") if c.family == "out_dtype"]
    assert {authority_of(case, SOC) for case in cases} == {"source"}


@in_full_alone
def test_each_page_says_what_its_document_demands_otherwise_than_the_host() -> None:
    """A row: a family with cases on the source's authority although the host accepts them, and a family without any."""
    for slug, of_source, of_document in (
        ("gelu_backward", "first_look", "null_pointer"),  # the exact formula
        ("selu_backward", "first_look", "null_pointer"),  # no scale
        ("gelu_backward_v2", "rank_refused", "first_look"),  # rank 9 is accepted
        ("hardtanh_backward", "edges", "limits"),
        ("hardtanh_backward", "around_points", "first_look"),
        ("softshrink_backward", "mixed_dtypes", "first_look"),
        ("threshold_backward", "small_thresholds", "first_look"),
        ("log_softmax_backward", "empty_unchecked", "one_hot_gradient"),
        ("silu_backward", "ranks_smoke", "first_look"),
    ):
        cases = [c for c in load(default_dir() / f"{slug}.yaml") if not c.soc or SOC in c.soc]
        assert "source" in {authority_of(c, SOC) for c in cases if c.family == of_source}, (slug, of_source)
        assert {authority_of(c, SOC) for c in cases if c.family == of_document} == {"document"}, (slug, of_document)


def test_a_product_that_the_document_does_not_name_is_the_sources() -> None:
    (case,) = (c for c in load(default_dir() / "silu_backward.yaml") if c.family == "public_example")
    assert [authority_of(case, soc) for soc in ("ascend910", "ascend310p")] == ["document", "source"]


def test_every_operator_names_where_its_checks_are() -> None:
    own = [op for op in OPERATORS.values() if op.origin == "aclnn-oracle"]
    assert [op.name for op in own if "op_api" not in op.source and "op_host" not in op.source] == []
    assert authority_text("source", OPERATORS["aclnnTanhBackward"].source).startswith("source (math/tanh_grad/op_api/")


@in_full_alone
def test_a_run_of_the_documents_rules_plans_nothing_else_in_any_volume() -> None:
    file = default_dir() / "nll_loss_backward.yaml"
    for settings in (Settings(authority="document"), Settings(authority="document", volume=Volume.of("20"))):
        planned = Run(settings).cases(file)
        assert planned
        assert all(authority_of(case, SOC) != "source" for case in planned)
    assert "out_dtype" in {case.family for case in Run(Settings()).cases(file)}
