"""The generated cases follow the standards' rules; the first N cases stay the same when N grows."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from ordinary import FULL, in_full_alone, some
from small_catalogues import WHOLE, described

from oracle import OracleError, validate
from oracle.catalogue import Case, default_dir, load, make_inputs, operator_of
from oracle.catalogue.data.case import outliers
from oracle.catalogue.data.generators.streams import Stream
from oracle.catalogue.expand.ecosystem import LEAST, SHARES, VOLUMES, Volume, stepped
from oracle.catalogue.loader import default_catalogues
from oracle.catalogue.measure import required
from oracle.numerics.orders.reducing import reduces
from oracle.operators import OPERATORS
from oracle.operators.definition.roles import CLASS_INDEX

pytestmark = pytest.mark.slow

OPS = sorted(map(operator_of, WHOLE))


@cache
def generated(cases: int = 1200 if FULL else 300, rule: str = "ecosystem") -> tuple[Case, ...]:
    return tuple(case for file in WHOLE for case in load(file, Volume(rule, cases)))


@pytest.mark.parametrize("rule", some(list(SHARES), 1))
def test_a_shorter_sequence_is_the_beginning_of_a_longer_one(rule: str) -> None:
    for op in OPS:
        short = [c for c in generated(150, rule) if c.op == op]
        long = [c for c in generated(400, rule) if c.op == op]
        assert list(long[:150]) == short
        assert len(short) == 150
        assert len({c.id for c in long}) == 400


@in_full_alone
def test_the_full_tier_holds_the_beginning_of_the_sequence() -> None:
    written = {c.id: c for file in WHOLE for c in load(file) if c.family == "ecosystem"}
    by_rule = {c.id: c for c in generated()}
    assert written
    assert all(by_rule[case_id] == case for case_id, case in written.items())
    assert {c.tier for c in written.values()} == {"full"}


def test_sizes_follow_the_ecosystem_rule() -> None:
    for case in generated():
        shape = case.output.shape
        power = all(n & (n - 1) == 0 for n in shape)
        below = all(n & (n + 1) == 0 for n in shape)
        assert power or below, case.id
        assert max(shape) <= 2**20
        assert LEAST <= math.prod(shape) <= 2**22


def test_values_are_half_uniform_half_normal_within_the_rules_limits() -> None:
    counts: Counter[str] = Counter()
    for case in generated():
        plan = case.inputs["gradOutput"]
        assert plan is not None
        assert plan.data is not None
        data = plan.data
        counts[data["gen"]] += 1
        if data["gen"] == "uniform":
            assert (data["low"], data["high"]) == (-5, 5)
        else:
            assert -5 <= data["mean"] <= 5
            assert 0.1 <= data["std"] <= 2
    total = sum(counts.values())
    assert set(counts) == {"uniform", "normal"}
    assert abs(counts["uniform"] / total - 0.5) < 0.02  # balanced by design, not by chance


@pytest.mark.parametrize("rule", ["l1", "l2"])
def test_the_levels_have_their_shares_of_values(rule: str) -> None:
    for op in OPS:
        cases = [c for c in generated(1000, rule) if c.op == op]
        words = Counter(word for c in cases for word in SHARES[rule] if f"-{word}" in c.id)
        for word, share in SHARES[rule].items():
            assert abs(words[word] / len(cases) - share / 10) < 0.03, (op, word)


def test_every_dtype_has_its_minimum() -> None:
    for level, least in (("L0", 200), ("L1", 700), ("L2", 700)):
        volume = Volume.of(level)
        assert volume.cases == VOLUMES[level]
        share = Counter(c.dtype for c in generated(400, volume.rule) if c.op == OPS[0])
        assert min(share.values()) / 400 * volume.cases >= least


def test_l0_walks_in_steps_of_15_and_16() -> None:
    assert [stepped(i) for i in range(6)] == [1, 16, 32, 47, 63, 78]
    lengths = {stepped(i) for i in range(2**17)}
    assert all(set(c.output.shape) <= lengths for c in generated(300, "l0"))


@pytest.mark.parametrize("rule", SHARES)
def test_every_generated_call_is_accepted(rule: str) -> None:
    for case in generated(150, rule):
        result = validate(described(case, "ascend910b"))
        assert result.ok, f"{case.id}: {result.reason}"


@pytest.mark.parametrize("rule", dict.fromkeys([*some(list(SHARES), 1), "l0"]))
def test_every_operator_has_the_asked_number_and_reduces_more_than_one_number(rule: str) -> None:
    for path in default_catalogues():
        cases = load(path, Volume(rule, 24))
        assert len(cases) == 24, path.stem
        op = OPERATORS[operator_of(path)]
        axis = op.attribute("axis")
        for case in cases if reduces(op.computes) and not op.inputs(CLASS_INDEX) else ():
            main = case.inputs[op.main]
            assert main is not None
            assert main.shape is not None
            assert main.shape[-1 if axis is None else case.attrs[axis.name]] > 1, case.id


@pytest.mark.parametrize(
    ("classes", "families", "words"),
    [
        ("lean", "ecosystem: {generate: {cases: 9, ranks: [1, 1], elements: 64, draws: [self]}}", "asks for 500 cases"),
        ("{only: [drawn]}", "drawn: {tier: full}", "no family has generate"),
    ],
)
def test_too_few_cases_are_told(classes: str, families: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "tanh.yaml"
    head = f"aclnn_oracle: 1\noperator: aclnnTanh\nclasses: {classes}\ndefaults: {{inputs: {{self: normal}}}}\n"
    path.write_text(f"{head}families:\n  {families}\n")
    with pytest.raises(OracleError, match=words):
        load(path, Volume("l0", 500))


@in_full_alone
def test_models_are_every_third_case_of_l2() -> None:
    for op, design in required(OPS).items():
        tails = {m[1:] for m in design.models if len(m) > 1}
        cases = [c for c in generated(300, "l2") if c.op == op]
        share = sum(c.output.shape[1:] in tails for c in cases) / len(cases)
        assert share > 0.2, op  # one third, minus the shapes of rank 1, which have no tail to recognise


@in_full_alone
def test_a_design_never_runs_dry_within_a_level() -> None:
    path = default_dir() / "nll_loss_backward.yaml"  # the fewest ranks, so the fewest shapes
    assert len(load(path, Volume("ecosystem", 6000))) == 6000


@pytest.mark.parametrize("text", ["L3", "0", "-1", "1.5", ""])
def test_a_wrong_volume_is_told(text: str) -> None:
    with pytest.raises(OracleError, match="must be L0, L1, L2 or a number"):
        Volume.of(text)


@pytest.mark.parametrize(("n", "count"), [(1, 1), (999, 1), (2500, 2)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_outliers_are_one_in_a_thousand_and_fit(n: int, count: int, dtype: str) -> None:
    values = np.full(n, 100.0)
    result = outliers(values, 1000.0, dtype, Stream(0, "case", "x"))
    limit = 65504.0 if dtype == "float16" else 100_000.0
    assert np.count_nonzero(result != 100) == count
    assert math.isclose(result.max(), limit)


def test_data_of_a_generated_case_follow_from_its_id() -> None:
    for case in islice(generated(150, "l1"), 20):
        a, b = (make_inputs(case, seed=0)[0]["gradOutput"] for _ in range(2))
        assert a.tobytes() == b.tobytes()
