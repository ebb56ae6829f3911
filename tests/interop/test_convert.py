"""Our cases in other tools' formats: written files read back with the same shapes, dtypes, attributes and ranges."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache

import pytest
from ordinary import FULL, one_of_each_kind

from oracle.catalogue import default_dir, files, load as cases_of, select
from oracle.catalogue.data.case import Case, TensorPlan
from oracle.catalogue.data.layout import arrange
from oracle.cli import main
from oracle.interop import load
from oracle.interop.names import range_of
from oracle.interop.write import FORMATS, write
from oracle.model.errors import OracleError
from oracle.operators import OPERATORS

pytestmark = pytest.mark.slow

SMALL = 2**10  # elements: so that the range of generated data is cheap to measure
FIRST, *_ = SMOKE = cases_of(default_dir() / "softmax_backward.yaml", tier="smoke")


@cache
def standard() -> list[Case]:
    slugs = one_of_each_kind(file.stem for file in files(default_dir()))
    read = (case for slug in slugs for case in cases_of(default_dir() / f"{slug}.yaml"))
    small = [c for c in read if all(p is None or math.prod(p.shape) <= SMALL for p in c.inputs.values())]
    return select(small, tier="standard")[:: 6 if FULL else 40]


def read_back(files, tmp_path):
    """Return the written text, read again in the order of writing."""
    result = []
    for file in files:
        path = tmp_path / file.name
        path.write_text(file.text, "utf-8")
        loaded = load(path) if file.count else None
        if loaded is not None:
            assert not loaded.rows, loaded.rows
            assert len(loaded.cases) == file.count
            result += loaded.cases
    return result


def plans(case: Case, unread: bool) -> dict[str, TensorPlan | None]:
    """Return the tensors that a format can express; no kernel has a tensor that is never read."""
    op = OPERATORS[case.op]
    return {n: p for n, p in {**case.inputs, **case.outputs}.items() if unread or not op.by_name[n].holds("nothing")}


def same_number(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


@pytest.mark.parametrize("to", FORMATS)
def test_what_is_written_reads_back(to, tmp_path):
    """The exception is a range that covers its type: TTK fills it by decades and ignores its ends."""
    written = write(standard(), to)
    assert sum(f.count + f.omitted.total() for f in written) == len(standard())
    result = read_back(written, tmp_path)
    originals = written_of(to)
    assert len(originals) == len(result) > 100
    for ours, theirs in zip(originals, result, strict=True):
        assert theirs.op == ours.op
        assert repr(theirs.attrs) == repr(ours.attrs)  # repr compares NaN as equal
        mine, other = plans(ours, to != "ttk"), plans(theirs, to != "ttk")
        assert list(mine) == list(other)
        for name in mine:
            same_tensor(mine[name], other[name], layouts=to == "ttk-aclnn")
            if name in ours.inputs and mine[name] is not None and "decades" not in (other[name].data or {}):
                same_range(ours, theirs, name, must=FORMATS[to].must)


def written_of(to: str) -> list[Case]:
    """Return the cases that a format can express: each file keeps the order of its operator's cases."""
    by_op: dict[str, list[Case]] = {}
    for case in standard():
        by_op.setdefault(case.op, []).append(case)
    kept = []
    for op_cases in by_op.values():
        kept += [c for c in op_cases if write([c], to)[0].count]
    return kept


def same_tensor(mine, other, *, layouts):
    assert (mine is None) == (other is None)
    if mine is None:
        return
    assert (mine.shape, mine.dtype) == (other.shape, other.dtype)
    if layouts:
        assert arrange(mine.shape, mine.view) == arrange(other.shape, other.view)
        assert mine.format == other.format


def same_range(ours: Case, theirs: Case, name: str, *, must: bool) -> None:
    ignored = ours.attrs.get("ignoreIndex") if name == "target" else None
    a = range_of(ours.inputs[name], ours.id, name, ignored=ignored)
    b = range_of(theirs.inputs[name], theirs.id, name, ignored=ignored)
    assert same_number(a.low, b.low)
    assert same_number(a.high, b.high)
    if must:
        ends = [v for v in a.must if not (same_number(v, a.low) or same_number(v, a.high))]
        assert len(ends) == len(b.must)
        assert all(same_number(x, y) for x, y in zip(ends, b.must, strict=True))


def case_with(**plan) -> Case:
    first = next(c for c in SMOKE if len(c.inputs["output"].shape) == 2)
    inputs = {**first.inputs, "output": replace(first.inputs["output"], **plan)}
    return replace(first, inputs=inputs)


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (case_with(view="transposed"), {"ttk-aclnn"}),
        (case_with(format="NCHW"), {"ttk", "ttk-aclnn"}),
        (case_with(storage_shape=(2**20,)), {"ttk-aclnn"}),
        (replace(FIRST, expect={"default": "ACLNN_ERR_PARAM_INVALID"}), set()),
        (replace(FIRST, null=frozenset({"executor"})), set()),
        (case_with(), {"atk", "ttk", "ttk-aclnn"}),
    ],
    ids=["view", "format", "storage", "refused", "null", "plain"],
)
def test_what_a_format_cannot_say_is_left_out_and_counted(case, said):
    written = {to: write([case], to)[0] for to in FORMATS}
    assert {to for to, file in written.items() if file.count} == said
    assert all(file.count + file.omitted.total() == 1 for file in written.values())


def test_ranges_are_exact_only_where_they_mean_the_same_data():
    plan = TensorPlan((64,), "float32", {"gen": "uniform", "low": -2, "high": 3})
    assert range_of(plan, "a", "b").exact
    for data in ({"gen": "normal"}, {"gen": "uniform", "scale": 2.0}, {"gen": "uniform", "spots": [[0, math.nan]]}):
        assert not range_of(replace(plan, data=data), "a", "b").exact


def test_atk_is_strict_json_with_words_for_what_json_lacks(tmp_path):
    case = case_with(data={"gen": "constant", "value": math.nan})
    (file,) = write([case], "atk")
    (entry,) = json.loads(file.text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert entry["inputs"][1]["range_values"] == "nan"


def test_convert_tells_what_it_wrote_and_left_out(tmp_path, capsys):
    source = str(default_dir() / "log_sigmoid_backward.yaml")
    arguments = ["convert", source, "--to", "ttk", "-o", str(tmp_path / "out"), "--tier", "smoke"]
    assert main([*arguments, "--limit", "100"]) == 0
    text = capsys.readouterr().out
    assert "left out:" in text
    assert "larger than 100 elements" in text
    made = tmp_path / "out" / "ttk_kernel_log_sigmoid_grad.csv"
    assert f"{made}: {len(load(made).cases)} cases" in text
    assert main(["convert", str(made), "--to", "atk", "-o", str(tmp_path)]) == 0
    assert len(load(tmp_path / "atk_aclnnLogSigmoidBackward.json").cases) == len(load(made).cases) > 0


def test_an_unknown_format_is_refused():
    with pytest.raises(OracleError, match="unknown format 'xml'"):
        write([FIRST], "xml")


ATTRIBUTES = [
    {"scale": None, "slope": -2.5, "twice": True, "mode": "fast", "how": 2},
    {"scale": 0.1, "slope": math.inf, "twice": False, "mode": "plain", "how": 1},
    {"scale": 3, "slope": 0.0, "twice": False, "mode": "plain", "how": 0},
]


@pytest.mark.parametrize("to", FORMATS)
def test_attributes_of_every_type_read_back(blended, to, tmp_path):
    cases = [blended.case(gradient=(6,), **attrs) for attrs in ATTRIBUTES]
    result = read_back(write(cases, to), tmp_path)
    assert [c.attrs for c in result] == ATTRIBUTES
    assert [[type(v) for v in c.attrs.values()] for c in result] == [[type(v) for v in a.values()] for a in ATTRIBUTES]
    assert all(c.outputs["gradInput"].shape == (4, 6) for c in result)


@pytest.mark.parametrize("to", ["atk", "ttk-aclnn"])
def test_outputs_whose_shape_follows_an_attribute_read_back(reducing, to, tmp_path):
    family = "  own: {why: a reason to be, dtype: float32, shape: [[9, 21]], attrs: {reduction: [0, 1, 2]}}\n"
    (tmp_path / "c.yaml").write_text(reducing.HUBER_CASES.replace("classes: all\n", "") + family)
    result = read_back(write(cases_of(tmp_path / "c.yaml"), to), tmp_path)
    assert [case.outputs["out"].shape for case in result] == [(9, 21), (), ()]


def test_ttk_gives_every_scalar_its_dtype(blended):
    (file,) = write([blended.case(**attrs) for attrs in ATTRIBUTES], "ttk-aclnn")
    for dtype in ("(None,)", "('float32',)", "('int64',)"):
        assert f'"{dtype}"' in file.text or dtype in file.text


def test_an_operator_without_a_kernel_is_told_what_its_declaration_lacks(blended, monkeypatch):
    monkeypatch.setitem(OPERATORS._all(), blended.OPERATOR.name, replace(blended.OPERATOR, kernel=None))
    (file,) = write([blended.case()], "ttk")
    assert file.count == 0
    assert dict(file.omitted) == {
        "of aclnnBlendedBackward, whose declaration names no kernel (kernel=KernelName(...) does)": 1
    }
    assert all(write([blended.case()], to)[0].count == 1 for to in ("atk", "ttk-aclnn"))


def test_the_kernel_form_leaves_out_operands_of_different_dtypes():
    smoke = cases_of(default_dir() / "binary_cross_entropy_backward.yaml", tier="smoke")
    case = next(c for c in smoke if c.dtype == "float32")
    mixed = replace(case, inputs={**case.inputs, "target": replace(case.inputs["target"], dtype="float16")})
    (file,) = write([mixed], "ttk")
    assert dict(file.omitted) == {"that the host casts before or after the kernel": 1}
