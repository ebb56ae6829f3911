"""Shards: every case in one shard, parts of equal duration, the same on every machine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from misbehaving import log_sigmoid, plan

from oracle.catalogue.measure import cost
from oracle.model.errors import OracleError
from oracle.settings.shards import Shard, deal, interleaved, longest_first, shuffled


def case(number: int, size: int = 64):
    return log_sigmoid(f"family{number}", shape=(size,))


CASES = [case(i, size=2_000_000 if i % 400 == 0 else 64 << (i % 5)) for i in range(2000)]


@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_every_case_is_in_one_shard_and_no_shard_is_much_longer_than_the_others(count):
    parts = [Shard(number, count).pick(CASES) for number in range(1, count + 1)]
    assert sum(map(len, parts)) == len(CASES)
    assert set().union(*parts) == {c.id for c in CASES}
    costs = {c.id: cost(c) for c in CASES}
    loads = [sum(costs[i] for i in part) for part in parts]
    assert max(loads) <= 1.03 * max(sum(loads) / count, max(costs.values()))


def test_the_order_of_the_cases_is_nothing_and_a_new_case_moves_few_others():
    before = deal(CASES, 8)
    assert deal(reversed(CASES), 8) == before
    after = deal([*CASES, case(5000), case(5001, size=300_000)], 8)
    assert sum(after[i] != number for i, number in before.items()) < len(CASES) / 20


def test_a_case_that_only_asks_for_a_status_costs_next_to_nothing():
    asks = replace(case(1), inputs={"self": replace(plan((1 << 24,)), spec_only=True)})
    assert cost(asks) < cost(case(1)) < cost(case(1, size=1_000_000))


@pytest.mark.parametrize("text", ["", "1", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "a/b", "1/100000", "1.0/2"])
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(OracleError, match=r"--shard .* must be K/N"):
        Shard.of(text)


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_workers_begin_with_the_longest_cases_and_end_at_about_the_same_time(workers):
    """xdist distributes the cases in its own way; every case takes its estimated cost."""
    order = [cost(c) for c in longest_first(CASES, workers, cost)]
    assert sorted(order) == sorted(map(cost, CASES))
    block = max(2, len(order) // workers // 4)
    free = [sum(order[worker * block : (worker + 1) * block]) for worker in range(workers)]
    at = workers * block
    while at < len(order):
        worker = free.index(min(free))
        part = order[at : at + max(2, (len(order) - at) // workers // 2)]
        free[worker], at = free[worker] + sum(part), at + len(part)
    assert max(free) <= 1.1 * sum(order) / workers


def test_a_shuffled_order_follows_from_the_seed_and_the_names_alone():
    names = [c.id for c in CASES]
    one, other = shuffled(names, 1, str), shuffled(names, 2, str)
    assert sorted(one) == sorted(other) == sorted(names)
    assert one != other != names
    assert shuffled(names[::-3], 1, str) == [name for name in one if name in set(names[::-3])]


def test_calls_that_write_nothing_are_spread_among_the_others_of_their_operator():
    things = ["a1", "a2", "a3", "a4", "a5", "a6", "aX", "aY", "b1", "bX", "b2"]
    order = interleaved(things, lambda name: name[0], lambda name: name[1] in "XY")
    assert order == ["a1", "a2", "aX", "a3", "a4", "a5", "aY", "a6", "b1", "bX", "b2"]
