"""Families of a class: written once by role, made for an operator, planned by the answers of its checks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from ordinary import one_of_each_kind

from oracle.backends.cpu import Backend
from oracle.case.one_case import run_case
from oracle.catalogue import Case, default_dir, files, load, load_all, operator_of
from oracle.catalogue.data.case import arguments
from oracle.catalogue.expand.class_families import made_for, templates
from oracle.catalogue.plan.planning import values, words
from oracle.catalogue.plan.statuses import SOCS, StatusResolver
from oracle.catalogue.portable import case_from_json, case_to_json
from oracle.catalogue.written.layers import sets
from oracle.catalogue.written.reading import Document, validate as follows_the_schema
from oracle.model.classes import SHAPE_FACTORS, shape_classes
from oracle.model.dtypes import FLOATS
from oracle.model.errors import OracleError
from oracle.operators import OPERATORS, Operator, validate
from oracle.operators.answers.parts import accepted_dtypes
from oracle.operators.answers.registry import operator_named
from oracle.operators.definition.parameters import choice, flag, number, output, tensor
from oracle.operators.definition.roles import MAIN
from oracle.settings.settings import Settings

HEAD = """\
aclnn_oracle: 1
operator: aclnnSigmoidBackward
defaults: {inputs: {gradOutput: nonzero 0.5 4, output: probabilities 0.02}}
"""
SOME = "families: {own: {why: a reason to be, dtype: float32, shape: [[2]]}}\n"


def loaded(folder: Path, text: str) -> list[Case]:
    path = folder / "c.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return load(path)


def families(cases: list[Case]) -> set[str]:
    return {case.family for case in cases}


# choosing -------------------------------------------------------------------------------------------------------------


def test_without_the_key_a_file_has_its_own_families_alone(tmp_path: Path) -> None:
    assert families(loaded(tmp_path, SOME)) == {"own"}


def test_all_only_and_without_choose_class_families(tmp_path: Path) -> None:
    known = set(made_for(OPERATORS["aclnnSigmoidBackward"]))
    chosen = {
        "classes: all\n": known,
        "classes: {only: [views, tiny]}\n": {"views", "tiny"},
        "classes: {without: {ecosystem: too many for this test}}\n": known - {"ecosystem"},
    }
    for line, wanted in chosen.items():
        got = families(loaded(tmp_path, line + SOME))
        assert {"own"} < got <= wanted | {"own"}
        left_out = {name for name in wanted - got if "huge" not in name}  # in a tier that must be requested by name
        assert left_out <= {"unread", "pairs_numbers", "whole_numbers"}, "what the operator has no call of"


def test_a_file_with_class_families_says_the_usual_numbers_of_every_input(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(HEAD.replace("output: probabilities 0.02", "output: {dtype: float16}") + "classes: all\n" + SOME)
    with pytest.raises(OracleError, match=r"c\.yaml:3: .* has none for output; .*`inputs: {output: normal 0 2}`"):
        load(path)
    path.write_text(HEAD.replace("output: probabilities 0.02", "output: null") + "classes: all\n" + SOME)
    with pytest.raises(OracleError, match=r"c\.yaml:3: .* has none for output; .* a family of yours may write null"):
        load(path)


def test_attributes_with_which_every_call_is_refused_are_no_usual_ones(tmp_path: Path) -> None:
    """The families would leave out these calls in silence."""
    path = tmp_path / "c.yaml"
    text = "aclnn_oracle: 1\noperator: aclnnMseLoss\nclasses: {only: [tiny]}\ndefaults:\n  attrs: {reduction: %s}\n"
    text += "  inputs: {self: normal 0 1, target: normal 0 1}\nfamilies: {}\n"
    path.write_text(text % 2)
    assert load(path)
    path.write_text(text % 3)
    message = r"c\.yaml:5: the checks of aclnnMseLoss refuse every call with these .*: reduction is 3; it must be"
    with pytest.raises(OracleError, match=message):
        load(path)


def test_a_family_with_a_why_replaces_the_class_family_and_one_without_changes_its_keys(tmp_path: Path) -> None:
    own = "classes: {only: [tiny]}\nfamilies: {tiny: {why: another reason, dtype: float32, shape: [[3]]}}\n"
    assert [case.id for case in loaded(tmp_path, own)] == ["sigmoid_backward/tiny[float32-3]"]
    changed = loaded(tmp_path, "classes: {only: [tiny]}\nfamilies: {tiny: {shape: [[3]]}}\n")
    assert [case.id for case in changed] == [
        f"sigmoid_backward/tiny[{d}-3]" for d in ("float16", "bfloat16", "float32")
    ]
    assert all(case.inputs["gradOutput"].data["scale"] == 1.0e-3 for case in changed)  # type: ignore[union-attr,index]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("classes: {only: [vews]}\n" + SOME, "c.yaml:4: unknown family of the operator's classes 'vews'"),
        ("classes: {without: {vews: not needed}}\n" + SOME, "c.yaml:4: unknown family of the operator's classes"),
        ("classes: {without: {views: not needed}}\nfamilies: {views: {tier: smoke}}\n", "of classes leaves it out"),
        ("classes: some\n" + SOME, "c.yaml:4: classes must be all"),
        ("families: {tiny: {shape: [[3]]}}\n", "c.yaml:4: family tiny: 'why' is missing"),
        ("classes: all\nfamilies: {vews: {shape: [[3]]}}\n", "c.yaml:5: family vews: 'why' is missing"),
        ("families: {own: {why: a reason to be, dtype: float32, shape: [{sizes: x}]}}\n", "unknown set of sizes 'x'"),
    ],
)
def test_a_wrong_choice_is_told_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(OracleError) as error:
        loaded(tmp_path, text)
    assert says in str(error.value)


# the lean level -------------------------------------------------------------------------------------------------------


def test_a_mistake_in_the_defaults_is_told_once_and_at_its_line(tmp_path: Path) -> None:
    text = HEAD.replace("nonzero 0.5 4", "normal zero 1") + "classes: all\n" + SOME
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(OracleError) as told:
        load(tmp_path / "c.yaml")
    (line,) = str(told.value).splitlines()
    assert line.endswith("c.yaml:3: generator normal: mean must be of kind float, not 'zero'")


def test_lean_has_every_family_in_fewer_cases_and_each_dtype_length_and_variant(tmp_path: Path) -> None:
    every, lean = ({}, {})  # type: dict[str, list[Case]], dict[str, list[Case]]
    for result, line in ((every, "classes: all\n"), (lean, "classes: lean\n")):
        for case in loaded(tmp_path, line + SOME):
            result.setdefault(case.family, []).append(case)
    whole = {name: lean.pop(name) for name in list(lean) if name.endswith("_whole")}
    more = {name for document in templates() for name in document.data.get("lean", {}).get("more", ())}
    assert lean.keys() - every.keys() <= more
    lean = {name: lean[name] for name in lean if name not in more}
    assert every.keys() == lean.keys()
    assert 2 * sum(map(len, lean.values())) < sum(map(len, every.values()))
    for name, cases in whole.items():
        assert {case.tier for case in cases} == {"full"}
        same = {case.id for case in every[name.removesuffix("_whole")]}
        assert {case.id.replace("_whole", "") for case in cases} == same
    for name in ("views", "broadcast", "lengths", "ranges", "special_spots", "shape_refused"):
        assert {case.dtype for case in lean[name]} == {case.dtype for case in every[name]}
        assert {case.id.split("-", 2)[-1] for case in lean[name]} == {case.id.split("-", 2)[-1] for case in every[name]}
        assert {case.id for case in lean[name]} < {case.id for case in every[name]}
    lengths = {case.output.shape for case in every["lengths"] if case.output}
    assert {case.output.shape for case in lean["lengths"] if case.output} == lengths


def test_each_lays_a_variant_s_own_axes_out_in_full_and_the_family_s_in_turn(tmp_path: Path) -> None:
    text = (
        "families:\n  own:\n    why: a reason to be\n    cover: each\n    dtype: floats\n    shape: [[2], [3]]\n"
        "    variants: {one: {}, other: {dtype: [float16, float32], inputs: {output: {view: strided}}}}\n"
    )
    assert [case.id.partition("[")[2] for case in loaded(tmp_path, text)] == [
        "float16-2-one]",
        "float16-3-other]",
        "float32-2-other]",
        "bfloat16-3-one]",
        "float32-2-one]",
    ]


def test_rows_that_are_refused_or_leave_nothing_give_their_pairs_to_others() -> None:
    """Elu refuses a negative alpha with a forward result. It is 0 where scale is 0 and the input is not a result."""
    cases = [c for c in load(default_dir() / "elu_backward.yaml", tier="standard") if c.family == "two_conditions"]
    attrs = [case.attrs for case in cases]
    assert all(case.computes("ascend910b") for case in cases)
    assert not any(a["isResult"] and a["alpha"] < 0 for a in attrs)
    assert not any(a["scale"] == 0 and not a["isResult"] for a in attrs)
    met = {(case.inputs["selfOrResult"].shape, a["alpha"]) for case, a in zip(cases, attrs, strict=True)}  # type: ignore[union-attr]
    shapes = {shape for shape, _ in met}
    assert len(shapes) == 24
    assert met == {(shape, alpha) for shape in shapes for alpha in (1.0, -0.5, 0.0)}


def test_few_standard_cases_of_a_lean_operator_hold_every_dtype_beside_every_class_of_shapes() -> None:
    """The full tier combines every two classes. No tier has pairs that are refused or leave nothing of the formula."""
    cases = [c for c in load(default_dir() / "elu_backward.yaml", tier="standard") if c.family == "shapes_by_class"]
    assert all(case.computes("ascend910b") for case in cases)
    assert not any(case.attrs["isResult"] and case.attrs["alpha"] < 0 for case in cases)
    few = [case for case in cases if case.tier == "standard"]
    classes = {case.id: [*enumerate(shape_classes(case.output.shape)), case.output.view] for case in cases}  # type: ignore[union-attr]
    every = {one for case in cases for one in classes[case.id]}
    assert {(case.dtype, one) for case in few for one in classes[case.id]} == set(product(FLOATS, every))
    assert len(few) <= 40 < len(cases)
    kinds = [set(SHAPE_FACTORS[name]) for name in ("last axis", "leading axis", "axes")]
    assert all({(k, name) for name in names} <= every for k, names in zip((1, 2, 4), kinds, strict=True))


def test_a_view_of_one_element_says_nothing_and_gives_its_pairs_to_others() -> None:
    """A gradient under a mean or a sum is one element; in the class's shapes an image has rank 4."""
    cases = load(default_dir() / "nll_loss2d_backward.yaml", tier="standard")
    cases = [case for case in cases if case.family == "two_conditions_classes"]
    plans = [(case.inputs["gradOutput"], case.output) for case in cases]
    assert {(1,)} < {grad.shape for grad, _ in plans if grad and grad.view == "contiguous"}
    strided = {out.shape for grad, out in plans if grad and out and grad.view == "strided" and grad.shape != (1,)}
    assert strided == {out.shape for _, out in plans if out}
    assert {len(shape) for shape in strided} == {4}
    assert all(grad.view == "contiguous" for grad, _ in plans if grad and grad.shape == (1,))


def test_a_pair_that_one_product_alone_accepts_is_planned_beside_those_that_all_accept() -> None:
    """Silu broadcasts only on ascend950."""
    cases = [c for c in load(default_dir() / "silu_backward.yaml", tier="standard") if c.family.startswith("two_cond")]
    everywhere = {case.output.shape for case in cases if case.output and "ascend910b" in (case.soc or SOCS)}
    alone = {case.inputs["gradOutput"].shape for case in cases if case.soc == ("ascend950",)}  # type: ignore[union-attr]
    assert len(everywhere) == 21
    assert () in alone


# what is planned ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", one_of_each_kind(OPERATORS.values()), ids=lambda op: op.slug)
def test_class_families_are_well_formed_for_every_operator(op: Operator) -> None:
    made = {name: dict(result.keys) for name, result in made_for(op).items()}
    made |= {f"lean_{name}": dict(result.keys) for name, result in made_for(op, lean=True).items()}
    head = {"aclnn_oracle": 1, "operator": op.name, "defaults": {"inputs": dict.fromkeys(op.names("input"), "normal")}}
    follows_the_schema(Document("classes", {**head, "families": made}, {}))
    assert all(family["why"] and not family["why"].endswith(".") for family in made.values())


def sample() -> Iterator[Case]:
    cases = load(default_dir() / "sigmoid_backward.yaml")
    yield from (
        case for case in cases if "refused" in case.family or case.family in ("mixed_dtypes", "empty", "formats")
    )


def test_products_asked_one_by_one_answer_as_those_asked_together() -> None:
    asker = StatusResolver(OPERATORS["aclnnSigmoidBackward"])
    for case in sample():
        given = arguments(case)
        socs = case.soc or SOCS
        together = asker.answers(socs, given)
        assert together == {soc: validate(case.op, soc=soc, **given).name for soc in socs}, case.id


def test_a_call_the_golden_does_not_serve_asks_for_its_status_alone_and_products_may_differ() -> None:
    cases = {case.id.partition("/")[2]: case for case in sample()}
    case = cases["dtype_refused[float64-3x4]"]
    assert (case.asks_status, case.computes("ascend910b")) == (True, False)
    record = run_case(case, Backend(), Settings())
    assert (record.status, record.reason) == ("pass", "")
    assert cases["half_dtypes_refused[bfloat16-3x4-all]"].computes("ascend950")
    for name, soc, status in (
        ("dtype_refused[float64-3x4]", "ascend910b", "SUCCESS"),
        ("dtype_refused[int32-3x4]", "ascend910b", "ERR_PARAM_INVALID"),
        ("half_dtypes_refused[bfloat16-3x4-all]", "ascend910b", "SUCCESS"),
        ("half_dtypes_refused[bfloat16-3x4-all]", "ascend910", "ERR_PARAM_INVALID"),
    ):
        assert cases[name].expected(soc) == f"ACLNN_{status}", (name, soc)


@pytest.mark.parametrize("slug", ["relu", "l1_loss", "threshold"])
def test_an_operator_of_integers_has_tails_and_layouts_of_every_type_judged(slug: str) -> None:
    cases = [case for case in load(default_dir() / f"{slug}.yaml") if case.family == "whole_numbers"]
    mains = [next(iter(case.inputs.values())) for case in cases if case.computes("ascend910b")]
    assert len(mains) == len(cases) > 10
    taken = set(accepted_dtypes(operator_named(cases[0].op), "ascend910b"))
    assert {main.dtype for main in mains} == taken & {"int8", "uint8", "int16", "int32", "int64"}
    assert {31, 33, 257, 4097} <= {math.prod(main.shape) for main in mains}
    assert {main.view for main in mains} > {"strided:3"}


# sets and attributes --------------------------------------------------------------------------------------------------


def test_every_set_of_sizes_is_used_and_says_why() -> None:
    texts = [path.read_text("utf-8") for path in files(default_dir())]
    texts += [Path(document.path).read_text("utf-8") for document in templates()]
    for name, written in sets().items():
        assert any(f"{{sizes: {name}}}" in text for text in texts), name
        assert len(str(written["why"])) > 8


def test_no_line_of_a_catalogue_is_long() -> None:
    for path in files(default_dir()):
        assert max(map(len, path.read_text("utf-8").splitlines())) <= 160, path.name


ODD = Operator(
    name="aclnnOddBackward",
    parameters=(
        tensor("gradOutput", "g", MAIN), number("beta", "beta", optional=True), number("alpha", "a", c="float"),
        flag("isResult"), choice("approximate", ("none", "tanh")), output("gradInput"),
    ),
    documented=(), checks=lambda a, platform: iter(()), empty=(), computes=None,  # type: ignore[arg-type]
)  # fmt: skip


def test_attributes_of_every_kind_are_read_and_told() -> None:
    written = {"beta": None, "alpha": 1.1, "isResult": True, "approximate": "tanh"}
    assert list(values(ODD, written, (2,))) == [written]
    assert words(written) == ["beta=null", "alpha=1.1", "isResult=true", "approximate=tanh"]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("beta", "x", "must be a number, or null for a null pointer"),
        ("alpha", None, "must be a number, not None"),
        ("isResult", 1, "must be true or false"),
        ("approximate", 3, "must be a word"),
    ],
)
def test_an_attribute_its_c_type_cannot_hold_is_refused(name: str, value: Any, says: str) -> None:
    with pytest.raises(OracleError, match=says):
        list(values(ODD, {name: value}, (2,)))


def test_a_case_of_a_class_survives_json() -> None:
    for case in sample():
        again = case_from_json(case.id, case_to_json(case), "x")
        assert repr((again.inputs, again.outputs, dict(again.attrs))) == repr(
            (case.inputs, case.outputs, dict(case.attrs))
        )


# operators from outside -----------------------------------------------------------------------------------------------


def test_the_operator_of_a_file_is_found_without_reading_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("aclnn_oracle: 1\noperator: 'aclnnThirdBackward'  # ours\nfamilies: {}\n")
    assert operator_of(path) == "aclnnThirdBackward"


def test_the_catalogue_of_an_operator_from_outside_lies_beside_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sigmoid_backward.yaml").write_text(HEAD + SOME)
    monkeypatch.setattr(OPERATORS, "_folders", {"aclnnSigmoidBackward": tmp_path})
    monkeypatch.setattr("oracle.catalogue.loader.default_dir", lambda: tmp_path / "none")
    (tmp_path / "none").mkdir()
    assert [case.id for case in load_all()] == ["sigmoid_backward/own[float32-2]"]
