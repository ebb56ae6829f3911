"""Conditions that a call may fulfil, and the shortest of them that cover failures and no pass.

A *condition* is made from the facts of many cases. It has a subject and a text: ``the reduced axis is longer than 64``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..model import classes
from ..model.call import Array
from ..model.classes import grouped
from .facts import Fact

LEFT = tuple((step, rest) for step in (16, 64) for rest in (1, step // 2, step - 1))  # block lengths and remainders
STEPS = tuple(1 << k for k in range(1, 14))  # a size may be a multiple of these
VECTOR = 64  # float32 numbers in a vector register of 256 bytes: the likeliest step
MOST_LIMITS = 48  # limits of one size; if there are more, some are omitted


@dataclass(frozen=True)
class Condition:
    """A property that a call may have. ``bits``: its description length; an unlikely cause has more."""

    subject: str
    text: str  # after the subject: "is longer than 64"
    bits: float
    test: Callable[[Any], bool]  # takes the fact's value
    fact: str  # the name of the fact
    choice: str  # its text in a choice of cases, after the fact's name: ">64"
    gap: tuple[int, int] | None = None  # of a limit: the nearest sizes of the cases that show it, below and above

    def of(self, facts: Sequence[Mapping[str, Fact]]) -> Array:
        """Return which of some cases fulfil the condition."""
        return np.array([self.holds(each) for each in facts], bool)

    def holds(self, facts: Mapping[str, Fact]) -> bool:
        """Return whether a case fulfils the condition."""
        return self.fact in facts and self.test(facts[self.fact])

    def __str__(self) -> str:
        return f"{self.subject} {self.text}"


FLAGS = {  # the last word of a fact that is true or false -> the texts for true and for false
    "present": ("is given", "is absent"),
    "asked": ("is asked for", "is not asked for"),
    "contiguous": ("is contiguous", "is not contiguous"),
    "offset": ("begins at an offset", "begins at no offset"),
    "stride 0": ("has a stride of 0", "has no stride of 0"),
    "special": ("holds values that are not finite", "holds finite values alone"),
    "broadcast": ("is broadcast", "is not broadcast"),
    "spread": ("holds several values and is broadcast", "is not broadcast, or holds one value"),
    "mixed": ("is of another type", "is not of another type"),
    "alike": ("repeat", "all differ"),
    "fits": ("has the shape of the first operand", "has another shape than the first operand"),
}
OF_STRIDES = {
    classes.IN_ORDER: "is contiguous", classes.STRIDED: "has a strided last axis",
    classes.PADDED: "has gaps between its rows", classes.TRANSPOSED: "has its axes out of order",
    classes.OUTER: "has a stride of 0 along its first axis", classes.INNER: "has a stride of 0 along its last axis",
    classes.EVERYWHERE: "has a stride of 0 along every axis", classes.OTHER: "has strides of 0 along some axes",
}  # fmt: skip
OF_FORMS = {
    classes.IN_ORDER: "has the full shape and is contiguous",
    classes.NOT_CONTIGUOUS: "has the full shape and is not contiguous",
    classes.EXPANDED: "has the full shape and a stride of 0",
    classes.OF_ONE: "has one element",
    classes.MIDDLE: "is broadcast along one middle axis",
    classes.OTHER: "is broadcast along several axes",
    **dict(zip(classes.ALONG, ("is broadcast along all axes but the last", "is broadcast along the last axis alone",
                               "is broadcast along the first axis alone"), strict=False)),
}  # fmt: skip
OF_TENSOR = {"the strides of ": OF_STRIDES, "the form of ": OF_FORMS}  # words that are said of the tensor itself
# How unlikely a subject is as a cause, in bits: kernels are written by dtype and by the reduced axis.
_BITS = (
    ("the type of", 5.0), ("the type", 2.0), ("the reduced axis", 3.0), ("the last axis", 4.0),
    ("the number of elements behind", 5.0), ("the number of elements before", 5.0), ("the rank of", 5.0),
    ("the rank", 3.0), ("the number of elements", 4.0), ("the values of", 7.0),
    ("the strides of", 5.5), ("the form of", 5.5), ("the offset of", 6.0), ("the place of", 3.5),
    ("the lengths of", 6.0), ("the data", 5.5),
    ("the axis counted", 4.0), ("the axis", 4.0), ("the sign of", 3.5), ("the attribute", 4.0), ("the layout of", 5.0),
)  # fmt: skip


def conditions(facts: Sequence[Mapping[str, Fact]]) -> tuple[list[tuple[Condition, ...]], Array]:
    """Return the conditions that some cases fulfil and others do not, the likeliest first; and a matrix that says which
    case (column) fulfils which (row). Conditions that the same cases fulfil are one tuple."""
    subjects = dict.fromkeys(subject for each in facts for subject in each)
    result: dict[bytes, tuple[list[Condition], Array]] = {}
    for subject in subjects:
        values = [each.get(subject) for each in facts]
        for condition, holds in _of_subject(subject, values):
            if holds.any() and not holds.all():
                result.setdefault(np.packbits(holds).tobytes(), ([], holds))[0].append(condition)
    alike = [(tuple(sorted(own, key=lambda each: each.bits)), holds) for own, holds in result.values()]
    alike.sort(key=lambda each: each[0][0].bits)
    rows = np.array([holds for _, holds in alike]) if alike else np.zeros((0, len(facts)), bool)
    return [own for own, _ in alike], rows


def _of_subject(subject: str, values: Sequence[Fact | None]) -> Iterator[tuple[Condition, Array]]:
    bits = next((bits for begins, bits in _BITS if subject.startswith(begins)), 5.0)
    if any(isinstance(value, bool) for value in values):
        known = _of_flag(subject, bits)
    elif any(isinstance(value, int) for value in values):
        sizes = np.unique([value for value in values if isinstance(value, int)])
        known = _of_size(subject, sizes, bits)
    else:
        known = _of_word(subject, dict.fromkeys(str(value) for value in values if value is not None), bits)
    of_each = dict.fromkeys(values)  # a fact has few values, and many cases have it
    for condition in known:
        answers = {value: value is not None and condition.test(value) for value in of_each}
        yield condition, np.array([answers[value] for value in values], bool)


def _of_flag(fact: str, bits: float) -> Iterator[Condition]:
    name, kind = next((fact.removesuffix(f" {kind}"), kind) for kind in FLAGS if fact.endswith(f" {kind}"))
    yes, no = FLAGS[kind]
    yield Condition(name, yes, bits, lambda value: value is True, fact, "=yes")
    yield Condition(name, no, bits, lambda value: value is False, fact, "=no")


def _of_word(fact: str, words: Iterable[str], bits: float) -> Iterator[Condition]:
    begins, said = next(((begins, said) for begins, said in OF_TENSOR.items() if fact.startswith(begins)), ("", {}))
    verb = "are drawn as" if fact.startswith("the values") else "is"
    for word in words:
        text = said[word] if said else f"{verb} {word}"
        own = bits + 1 if word == "zero" else bits  # said of the attribute itself
        yield Condition(fact.removeprefix(begins), text, own, partial(operator.eq, word), fact, f"={word}")
    if fact == "the type":
        yield Condition(
            fact, "is float16 or bfloat16", bits, ("float16", "bfloat16").__contains__, fact, ":float16,bfloat16"
        )


def _of_size(fact: str, sizes: Array, bits: float) -> Iterator[Condition]:
    more, at_most = ("is longer than", "is no longer than") if fact.endswith(" axis") else ("is above", "is at most")
    for below, above in _gaps(sizes):
        limit = roundest(below, above - 1)
        own = bits + complexity(limit)
        gap = below, above
        yield Condition(fact, f"{more} {limit}", own, partial(operator.lt, limit), fact, f">{limit}", gap)
        yield Condition(fact, f"{at_most} {limit}", own, partial(operator.ge, limit), fact, f"<={limit}", gap)
    if fact.startswith(("the rank", "the axis", "the offset", "the attribute")):
        for size in sizes.tolist():
            yield Condition(fact, f"is {size}", bits + 1, partial(operator.eq, size), fact, f"={size}")
        return
    for step, rest in LEFT:
        text, test = f"leaves {rest} after blocks of {step}", partial(_leaves, step, rest)
        yield Condition(fact, text, bits + 6, test, fact, f"%{step}={rest}")
    for step in STEPS:
        own = bits + 2.5 + abs(math.log2(step / VECTOR)) / 16  # decides if the cases do not distinguish steps
        yield Condition(fact, f"is a multiple of {step}", own, partial(_leaves, step, 0), fact, f"%{step}=0")
        yield Condition(fact, f"is no multiple of {step}", own, partial(_is_no_multiple, step), fact, f"%{step}!=0")


def _leaves(step: int, rest: int, size: Fact) -> bool:
    return int(size) % step == rest


def _is_no_multiple(step: int, size: Fact) -> bool:
    return int(size) % step != 0


def _gaps(distinct: Array) -> Iterable[tuple[int, int]]:
    gaps = list(zip(distinct[:-1].tolist(), distinct[1:].tolist(), strict=True))
    if len(gaps) <= MOST_LIMITS:
        return gaps
    powers = [(a, b) for a, b in gaps if complexity(roundest(a, b - 1)) < 3]
    others = [gap for gap in gaps if gap not in powers]
    return [*powers, *others[:: max(1, len(others) // MOST_LIMITS)]]


def roundest(least: int, most: int) -> int:
    """Return the number from ``least`` to ``most`` that a person would write: the smallest power of two, else a number
    with few digits."""
    power = 1
    while power < max(1, least):
        power *= 2
    if power <= most:
        return power
    for digits in range(len(str(most)), 0, -1):
        unit: int = 10**digits
        if most // unit * unit >= max(1, least):
            return most // unit * unit
    return least


def complexity(number: int) -> float:
    """Return how many bits it takes to write down a number: few for 0, 1 and powers of two."""
    if number <= 1:
        return 1.0
    if number & (number - 1) == 0:
        return 2.0
    return 3.0 + math.log2(len(str(number).rstrip("0")) + 1)


# Where an operator fails and where it does not: the shortest conditions that cover the failures and no pass.
#
# A conjunction has conditions on at most three subjects. The best one describes which cases fail in the fewest bits:
# its own length, plus the cost of the exceptions inside and outside (a description length, as in two-part codes). So a
# third condition must save bits, and a single exception does not hide a rule that all other cases follow.

CLEAR, FULL = 0.9, 0.98  # one bug: least share of a condition's cases that fail, and of the failures under it
MOST = 3  # subjects in a conjunction
LONGEST = 5  # conditions in a conjunction: two of one subject are one range, or a range and a step
VARIED = 8  # best conjunctions; equivalent conditions are also tried in them
BEAM = 32  # conjunctions that the search keeps in each step
FEWEST = 2  # failures that a claimed condition must cover
LEAST_PRECISION = 0.5  # share of the cases under the condition that must fail
EXTRA = 4.0  # bits that each further condition costs


@dataclass(frozen=True)
class Contrast:
    """A conjunction and its counts: ``failed`` of ``inside`` cases under it, ``passed`` of ``outside`` elsewhere."""

    conditions: tuple[Condition, ...]
    failed: int
    inside: int
    passed: int
    outside: int
    holds: Array  # which of the cases fulfil it
    bits: float = 0.0

    @property
    def misses(self) -> int:
        """How many cases the conjunction predicts wrongly."""
        return self.inside - self.failed + self.outside - self.passed

    def is_needed(self, failures: int) -> bool:
        """Return whether nearly all failures are under it and nearly no other case elsewhere fails. Cases under it may
        pass: they lack the values that fail."""
        return self.failed >= FULL * failures and self.passed >= CLEAR * self.outside


def holding(chosen: Sequence[Condition], facts: Sequence[Mapping[str, Fact]]) -> Array:
    """Return which of some cases fulfil all chosen conditions."""
    return np.asarray(np.logical_and.reduce([condition.of(facts) for condition in chosen]))


def contrast(facts: Sequence[Mapping[str, Fact]], bad: Array) -> Contrast | None:
    """Return the conjunction that best predicts which cases are ``bad``; None if no conjunction saves bits."""
    if np.count_nonzero(bad) < FEWEST or bad.all():
        return None
    alike, rows = conditions(facts)
    if not alike:
        return None
    known = [own[0] for own in alike]
    best = next((result for result in _search(known, rows, bad) if result.is_worth), None)
    if best is None:
        return None
    holds = np.logical_and.reduce(rows[list(best.chosen)])
    return measured(list(_with_own_gaps([known[k] for k in best.chosen], facts)), holds, bad, best.bits)


def _with_own_gaps(chosen: Sequence[Condition], facts: Sequence[Mapping[str, Fact]]) -> Iterator[Condition]:
    """Yield the conditions of a conjunction. Only cases that fulfil all others show where a limit lies."""
    for condition in chosen:
        if condition.gap is None:
            yield condition
            continue
        others = [other for other in chosen if other is not condition]
        sizes = [int(each[condition.fact]) for each in facts
                 if condition.fact in each and all(other.holds(each) for other in others)]  # fmt: skip
        below, above = condition.gap
        below = max((size for size in sizes if size <= below), default=below)
        above = min((size for size in sizes if size >= above), default=above)
        yield replace(condition, gap=(below, above))


def measured(chosen: Sequence[Condition], holds: Array, bad: Array, bits: float = 0.0) -> Contrast:
    """Count the cases under a conjunction and elsewhere."""
    inside, outside = int(np.count_nonzero(holds)), int(np.count_nonzero(~holds))
    failed, passed = int(np.count_nonzero(holds & bad)), int(np.count_nonzero(~holds & ~bad))
    return Contrast(tuple(chosen), failed, inside, passed, outside, holds, bits)


@dataclass(frozen=True)
class SearchResult:
    """A conjunction that the search found, by the numbers of its conditions. ``is_worth``: it is shorter than a list of
    the failures, covers some of them, and most cases under it fail, a larger share than elsewhere."""

    chosen: tuple[int, ...]
    bits: float
    is_worth: bool


def rivals(facts: Sequence[Mapping[str, Fact]], bad: Array) -> list[tuple[tuple[Condition, ...], float]]:
    """Return the conjunctions that predict the failures best, with their bits, the best first. The very best ones also
    appear with another condition that the same cases fulfil."""
    alike, rows = conditions(facts)
    best = _search([own[0] for own in alike], rows, bad)[:BEAM] if alike else []
    result = {each.chosen: (tuple(alike[k][0] for k in each.chosen), each.bits) for each in best}
    choices = list(result.values())
    for each in best[:VARIED]:
        chosen, bits = result[each.chosen]
        for place, k in enumerate(each.chosen):
            choices += [((*chosen[:place], twin, *chosen[place + 1 :]), bits + twin.bits - chosen[place].bits)
                     for twin in alike[k][1:]]  # fmt: skip
    return sorted(choices, key=lambda each: each[1])


def _search(known: Sequence[Condition], rows: Array, bad: Array) -> list[SearchResult]:
    """Extend the best conjunctions by every condition in turn. Return all that were kept, the best first."""
    own = np.array([condition.bits + EXTRA for condition in known])
    numbers = {subject: n for n, subject in enumerate(dict.fromkeys(condition.subject for condition in known))}
    subjects = np.array([numbers[condition.subject] for condition in known])
    wrong, right = rows[:, bad].astype(np.float32), rows[:, ~bad].astype(np.float32)
    failures, passes = wrong.shape[1], right.shape[1]
    nothing = float(_coded(np.array([0.0]), np.array([0.0]), failures, passes)[0])
    share = max(LEAST_PRECISION, failures / (failures + passes))  # a condition with less says which cases pass
    met: dict[tuple[int, ...], SearchResult] = {}
    beam: list[tuple[int, ...]] = [()]
    for _ in range(LONGEST):
        result: dict[tuple[int, ...], SearchResult] = {}
        here = np.array([np.minimum.reduce(wrong[list(chosen)], initial=1, axis=0) for chosen in beam])
        there = np.array([np.minimum.reduce(right[list(chosen)], initial=1, axis=0) for chosen in beam])
        for chosen, failed, passed in zip(beam, here @ wrong.T, there @ right.T, strict=True):
            bits = _coded(failed, passed, failures, passes) + own + own[list(chosen)].sum()
            bits[list(chosen)] = np.inf
            values = subjects[list(chosen)]
            if len(set(values)) == MOST:
                bits[~np.isin(subjects, values)] = np.inf
            for k in np.argpartition(bits, min(BEAM, len(bits) - 1))[:BEAM]:
                if failed[k] and np.isfinite(bits[k]):
                    enough = failed[k] >= max(FEWEST, share * (failed[k] + passed[k]))
                    key = tuple(sorted((*chosen, int(k))))
                    result.setdefault(key, SearchResult(key, float(bits[k]), bool(enough and bits[k] < nothing)))
        beam = sorted(result, key=lambda key: (result[key].bits, key))[:BEAM]
        met.update((key, result[key]) for key in beam)
        if not beam:
            break
    return sorted(met.values(), key=lambda each: (each.bits, each.chosen))


def _coded(failed: Array, passed: Array, failures: int, passes: int) -> Array:
    """Return the bits that describe which cases fail under a condition and elsewhere; it covers ``failed`` failures and
    ``passed`` passes."""
    inside, outside = failed + passed, failures - failed + passes - passed
    return np.asarray(_entropy(failed, inside) + _entropy(failures - failed, outside))


def _entropy(some: Array, all_of_them: Array) -> Array:
    """Return the bits that describe which of ``all_of_them`` are the ``some``, and how many they are."""
    total = np.maximum(all_of_them, 1.0).astype(np.float64)
    share = np.clip(some / total, 1e-12, 1 - 1e-12)
    shannon = -total * (share * np.log2(share) + (1 - share) * np.log1p(-share) / np.log(2))
    return np.where(all_of_them > 0, shannon + 0.5 * np.log2(total + 1), 0.0)


def sentence(chosen: Sequence[Condition]) -> str:
    """Return conditions as a sentence without its end; conditions on one subject are combined."""
    by_subject = grouped(sorted(chosen, key=lambda c: (c.bits, c.text)), lambda c: c.subject)
    return ", and ".join(f"{subject} {_joined([c.text for c in own])}" for subject, own in by_subject.items())


def _joined(words: Sequence[str]) -> str:
    """Return words as "is longer than 64 and no multiple of 64": one verb, the limit first, another verb last."""
    first, *others = sorted(words, key=lambda word: (not word.startswith("is "), "multiple" in word))
    return " and ".join([first, *(word.removeprefix("is ") for word in others)])


def counted(where: Contrast) -> str:
    """Return the text of the counts for a sentence."""
    return f"fails in {where.failed:,} of {where.inside:,}; passes in {where.passed:,} of {where.outside:,} elsewhere"


def is_clear(where: Contrast) -> bool:
    """Return whether a contrast predicts nearly all cases correctly."""
    return where.misses <= math.ceil(0.02 * (where.inside + where.outside))
