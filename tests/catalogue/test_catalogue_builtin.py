"""The built-in catalogue: the validator gives every status, every golden informs, every tier has its contents."""

from __future__ import annotations

import json
import math
import re
import runpy
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from ordinary import FULL, one_of_each_kind, some
from small_catalogues import described

from oracle.case.prepare import Prepared, uninformative
from oracle.catalogue import Case, default_dir, digest, files, is_catalogue, load, load_all, make_inputs, select
from oracle.catalogue.expand.class_families import made_for
from oracle.catalogue.loader import load_default, operator_of
from oracle.catalogue.measure import FILE, counted, counts_text
from oracle.catalogue.plan.planning import LONG_SUM
from oracle.model.aclnn import NEWEST, PLATFORMS, platform
from oracle.model.dtypes import FLOATS
from oracle.operators import OPERATORS, Operator, validate
from oracle.operators.answers.registry import operator_named
from oracle.operators.definition.parameters import SUM
from oracle.settings.settings import Settings

# Operators with written cases; a page may come before its YAML. To expand them all takes minutes.
WRITTEN = [op for op in OPERATORS.values() if (default_dir() / f"{op.slug}.yaml").is_file()]
OPERATED = one_of_each_kind(WRITTEN)
SLUGS = [op.slug for op in OPERATED]
LEAN = {slug for slug in SLUGS if "\nclasses: lean\n" in (default_dir() / f"{slug}.yaml").read_text("utf-8")}
NAMES = {op.name for op in OPERATED}
LARGE = 5000  # elements; larger goldens repeat what smaller ones of their family show


@cache
def catalogue() -> tuple[Case, ...]:
    return tuple(load_default(NAMES))


@cache
def of(slug: str) -> list[Case]:
    return [case for case in catalogue() if case.id.startswith(f"{slug}/")]


def sample(slug: str) -> list[Case]:
    """Return the cases to check one by one: all of an operator's own families, and all of its class families unless
    they are at the lean level. At the lean level only the first case of each, because one rule planned them all."""
    if slug not in LEAN:
        return of(slug)
    ofclass, seen, result = made_for(operator_named(slug), lean=True), set(), []
    for case in of(slug):
        if case.family not in ofclass or case.family not in seen:
            result.append(case)
        seen.add(case.family)
    return result


def partly(cases: list[Case]) -> list[Case]:
    """Return every refused or empty call and a tenth of the others, which are much alike; all in the full run."""
    if FULL:
        return cases
    rare = [case for case in cases if case.expect or any(plan and 0 in plan.shape for plan in case.inputs.values())]
    return [*rare, *[case for case in cases if not case.expect][::10]]


@pytest.mark.parametrize("slug", SLUGS)
def test_every_status_is_the_validators_on_every_soc(slug: str) -> None:
    wrong = []
    for case in partly(sample(slug)):
        for soc in case.soc or PLATFORMS:
            status = validate(described(case, soc))
            if status.name != case.expected(soc):
                wrong.append(f"{case.source}: {case.id} on {soc}: {status.name} ({status.reason})")
    assert not wrong, "\n".join(wrong)


def proves_nothing(case: Case, soc: str) -> str:
    """Return why the case's golden on a SoC proves nothing, "" if it proves something."""
    case = replace(case, uninformative="")
    return uninformative(case, Prepared.make(case, Settings(soc=soc)).values)


def test_a_float16_sum_of_very_many_terms_says_that_it_may_overflow() -> None:
    cases = [
        c for c in load(default_dir() / "mse_loss.yaml") if c.attrs["reduction"] == SUM and c.family == "pairs_sizes"
    ]
    long = [c for c in cases if (x := c.inputs["self"]) and math.prod(x.shape) > 65504]
    assert {(c.output.dtype, bool(c.uninformative)) for c in long if c.output} == {
        ("float16", True),
        ("float32", False),
    }


@pytest.mark.parametrize("slug", some(SLUGS, 4))
def test_every_golden_is_informative_or_says_why_not(slug: str) -> None:
    """A class's reason about a family may apply to some operators only. An operator's reason may apply to some cases of
    a family only, or to one SoC only."""
    of_classes = {**made_for(operator_named(slug)), **made_for(operator_named(slug), lean=True)}
    wrong, true, said = [], set(), {}
    for case in sample(slug) if FULL or slug in LEAN else sample(slug)[::5]:
        socs = [s for s in sorted(case.soc or PLATFORMS, key="ascend910b".__ne__) if case.computes(s)]
        if not socs or case.output is None or math.prod(case.output.shape) > LARGE:
            continue
        message = proves_nothing(case, socs[0])
        if message and not case.uninformative:
            wrong.append(f"{case.source}: {case.id}: {message}")
        if case.uninformative not in ("", LONG_SUM) and case.family not in of_classes:
            said[case.uninformative] = case.id
            if case.uninformative not in true and (message or any(proves_nothing(case, soc) for soc in socs[1:])):
                true.add(case.uninformative)
    assert not wrong, "\n".join(wrong)
    assert not FULL or said.keys() <= true, f"says uninformative: {[said[text] for text in said.keys() - true]}"


def test_ids_are_unique_and_well_formed() -> None:
    counts = Counter(case.id for case in catalogue())
    assert not [case_id for case_id, n in counts.items() if n > 1]
    form = re.compile(
        r"[a-z0-9_]+/[a-z][a-z0-9_]*\[[a-z0-9_]+-(scalar|\d+(x\d+)*)(-\w+=[-+.\w]*)*(-[A-Za-z0-9_.]+)*\]\Z"
    )
    assert not [case.id for case in catalogue() if not form.match(case.id)]


def test_files_are_named_after_their_operators() -> None:
    result = files(default_dir())
    assert sorted(path.stem for path in result) == sorted(op.slug for op in WRITTEN)
    for path in result:
        assert operator_of(path) in OPERATORS
        assert is_catalogue(path)


def test_why_is_one_line_of_reason_per_family() -> None:
    whys: dict[str, set[str]] = defaultdict(set)
    for case in catalogue():
        whys[case.why].add(f"{case.op}/{case.family}")
        assert "\n" not in case.why
        assert not case.why.endswith(".")
        assert case.source.rpartition(":")[2].isdigit()
    assert max(map(len, whys)) <= 200


def test_smoke_has_more_than_a_tile_and_whole_tiles_of_every_elementwise_operator() -> None:
    """Most wrong kernels are wrong from the second tile on, or in tensors of whole tiles."""
    shapes: dict[str, list[tuple[int, ...]]] = {
        slug: [] for slug in SLUGS if "tiles_smoke" in made_for(operator_named(slug))
    }
    for case in select(load_all(tier="smoke"), tier="smoke"):
        op = operator_named(case.op)
        if op.slug in shapes and (main := case.inputs.get(op.main)) is not None:
            shapes[op.slug].append(main.shape)
    for slug, seen in shapes.items():
        assert max(shape[-1] for shape in seen if shape) >= 20000, slug
        assert max(shape[0] for shape in seen if shape) >= 4099, slug
        assert {math.prod(shape) % 8 == 0 for shape in seen if math.prod(shape) > 4096} == {False, True}, slug


def test_smoke_holds_all_operators_and_dtypes_in_few_cases() -> None:
    smoke, names = select(load_all(tier="smoke"), tier="smoke"), {op.name for op in WRITTEN}
    assert len(smoke) <= 90 * len(names)
    assert sum(math.prod(p.shape) for c in smoke for p in c.inputs.values() if p is not None) < 1_200_000 * len(names)
    runnable = {(c.op, c.dtype) for c in smoke if c.expected("ascend910b") == "ACLNN_SUCCESS"}
    assert runnable >= {(op, dtype) for op in names for dtype in ("float16", "bfloat16", "float32")}
    refused = {c.op for c in smoke if c.expected("ascend910b") != "ACLNN_SUCCESS"}
    assert refused == names, "refused calls are seen early too"


def test_standard_is_of_the_intended_size() -> None:
    standard = select(catalogue(), tier="standard", soc="ascend910b")
    sizes = Counter(case.op for case in standard)
    # With every three conditions, and classes of shapes and of layouts.
    assert 2000 < sum(sizes[op.name] for op in OPERATED if op.slug not in LEAN) < 30_000
    assert max((sizes[op.name] for op in OPERATED if op.slug in LEAN), default=0) < 1300
    largest = max(
        math.prod(p.shape) for c in standard for p in c.inputs.values() if p is not None and p.data is not None
    )
    assert largest <= 4_800_004, "a third tile on each of 48 cores, of elements or of rows"


RANKS = {"nll_loss_backward": (1, 2), "nll_loss2d_backward": (4,), "glu_backward": range(1, 9)}  # else all
RANKS |= dict.fromkeys(("rms_norm", "rms_norm_grad", "add_rms_norm", "layer_norm", "layer_norm_backward"), range(1, 9))
RANKS |= dict.fromkeys(("group_norm", "group_norm_backward"), range(2, 9))
RANKS |= dict.fromkeys(("glu", "swi_glu", "swi_glu_grad"), range(1, 9))
RANKS |= {"nll_loss": (0, 1), "nll_loss2d": (0, 3)}  # ranks of a reduced loss, and of one loss per sample
RANKS |= {"cross_entropy_loss": (1,), "cross_entropy_loss_grad": (2,)}


@pytest.mark.parametrize("slug", SLUGS)
def test_every_dtype_meets_every_rank_and_attribute(slug: str) -> None:
    """Every dtype x accepted rank 0-8 x reduction, every dim of every rank. At the lean level, and where the rank
    follows from the reduction, every value of each."""
    op = operator_named(slug)
    crossed = op.attribute("axis") or op.attribute("reduction")
    seen = {
        (c.dtype, len(c.output.shape), None if crossed is None else c.attrs[crossed.name])  # type: ignore[union-attr]
        for c in of(slug)
        if c.computes("ascend910b") and None not in c.outputs.values()
    }
    columns = [set(column) for column in zip(*seen, strict=True)]
    for dtype in ("float16", "bfloat16", "float32"):
        for rank in RANKS.get(slug, range(9)):
            attributes: list[tuple[int | None, ...]] = [(None,)]
            if op.attribute("axis"):
                attributes = [(d,) for d in range(-max(1, rank), max(1, rank))]
            elif op.attribute("reduction"):
                attributes = [(0,), (1,), (2,)]
            for attribute in attributes:
                wanted = (dtype, rank, *attribute)
                if slug in LEAN or op.shape is not None:
                    assert all(value in column for value, column in zip(wanted, columns, strict=False))
                else:
                    assert wanted in seen


LENGTHS = [1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 130, 255, 256, 257, 511, 512, 513]
LENGTHS += [1025, 4097, 16384, 16385, 20000]


def test_every_reduced_length_of_the_list_is_there_in_every_dtype() -> None:
    lengths: dict[str, set[int]] = defaultdict(set)
    for case in of("softmax_backward"):
        plan = case.inputs["gradOutput"]
        if plan is not None and plan.shape and 0 not in plan.shape and case.computes("ascend910b"):
            lengths[case.dtype].add(plan.shape[case.attrs["dim"]])
    for dtype in ("float16", "bfloat16", "float32"):
        assert lengths[dtype] >= set(LENGTHS), dtype


def test_every_operand_of_every_operator_is_seen_not_contiguous() -> None:
    seen = {(c.op, n, p.view) for c in catalogue() for n, p in {**c.inputs, **c.outputs}.items() if p is not None}
    for op in OPERATED:
        for name in op.names("input", "output"):
            assert any((op.name, name, view) in seen for view in ("strided", "strided:3", "transposed", "offset")), name


def test_every_pointer_is_null_once() -> None:
    for op in OPERATED:
        names = {"workspaceSize", "executor"}
        names |= {p.name for p in op.parameters if p.kind != "attr" and not p.optional}
        for case in of(op.slug):
            if case.expected("ascend950").endswith("NULLPTR"):  # 161001, or 561103
                names -= {n for n, p in {**case.inputs, **case.outputs}.items() if p is None} | set(case.null)
            else:  # refused otherwise, or accepted
                names -= {n for n, p in case.outputs.items() if p is None}
        assert not names, op.name


@pytest.mark.parametrize("op", OPERATED, ids=SLUGS)
def test_every_check_of_the_validator_decides_a_case(op: Operator) -> None:
    seen, decided = set(), set()
    for case in partly(of(op.slug)):
        for soc in case.soc or PLATFORMS:
            call = described(case, soc)
            for cann in (NEWEST, "master"):
                for check in op.checks({**call.inputs, **call.outputs, **call.attrs}, platform(soc, cann)):
                    seen.add(check.name)
                    if check.status is not None:
                        decided.add(check.name)
                        break
    never = {name for name in seen if name.startswith("common dtype")}  # their dtype lists are closed under promotion
    never |= {name for name in seen if re.match(DECIDED_BEFORE, name)}
    assert seen - never <= decided, "no case is decided by these checks"


# Scalars of a catalogue are real; an earlier check compares these types, or they always have a cast.
DECIDED_BEFORE = (
    r"\w+ casts to float32|dtype of (negativeSlope|result|gradInput|clipValueM..)$"
    r"|the common dtype of (gradOutput and self|self and weight) casts"
    r"|bfloat16 gradOutput where"
)


def test_digest_depends_on_names_and_contents_only(tmp_path: Any) -> None:
    for folder, order in (("a", (1, 2)), ("b", (2, 1))):
        (tmp_path / folder).mkdir()
        for i in order:
            (tmp_path / folder / f"{i}.yaml").write_text(f"x: {i}\n")
    a, b = (digest((tmp_path / f).iterdir()) for f in "ab")
    assert a == b
    (tmp_path / "b" / "1.yaml").write_text("x: 3\n")
    assert digest((tmp_path / "b").iterdir()) != a
    (tmp_path / "a" / "1.yaml").rename(tmp_path / "a" / "3.yaml")
    assert digest((tmp_path / "a").iterdir()) != a


MARKERS = [
    ("aclnn_oracle: 1\n", True),
    ("# comment\n\n---\naclnn_oracle: 1\n", True),
    ("\ufeffaclnn_oracle: 1\n", True),
    ("%YAML 1.1\n---\naclnn_oracle : 1\n", True),
    ("# c\r\naclnn_oracle: 1\r\n", True),
    ("version: 3\naclnn_oracle: 1\n", False),
    ("aclnn_oracles: 1\n", False),
    ("- aclnn_oracle: 1\n", False),
    ("", False),
    ("[" * 5000, False),
    ("\0\1\2", False),
]


@pytest.mark.parametrize(("text", "ours"), MARKERS)
def test_the_marker(tmp_path: Any, text: str, ours: bool) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(text.encode())
    assert is_catalogue(path) is ours
    assert not is_catalogue(tmp_path / "missing.yaml")
    assert not is_catalogue(tmp_path)


def test_gradients_differ_between_rows() -> None:
    """A constant gradient hides a swapped row."""
    for case in select(catalogue(), tier="smoke"):
        plan = case.inputs.get("gradOutput")
        excused = plan is None or plan.data is None or plan.spec_only or plan.dtype not in FLOATS
        if excused or "expanded" in plan.view or "example" in case.family:
            continue
        made = make_inputs(case, seed=0)[0]["gradOutput"]
        assert made.size < 3 or len(np.unique(made.astype(np.float64))) > 1, case.id


def test_the_counts_that_info_and_list_show_are_of_this_catalogue():
    shown = json.loads(FILE.read_text("utf-8"))
    text = "the catalogue changed: python tools/counts.py"
    assert shown["sha256"] == digest(files(default_dir())), text
    now = json.loads(counts_text(counted(catalogue())))["cases"]
    assert {op: result for op, result in now.items() if result != shown["cases"][op]} == {}, text
    assert set(shown["cases"]) == {op.name for op in WRITTEN}, text
    if not FULL:
        return
    tool = runpy.run_path(str(default_dir().parent / "tools" / "counts.py"))
    assert tool["PAGE"].read_text("utf-8") == tool["page"](now), text
