"""Cases by rule: the generation rule of the ecosystem standard (opbase ``mixed_tolerance_standard.md`` section 1), and
the volumes L0, L1 and L2 of the commercial standard (``commercial_standard.md``, generation and execution).

A rule is an endless sequence of rows. Every pass crosses dtype x format x rank x attributes completely, in its own
order. The form of the sizes, the distribution of the values and the variant are then chosen so that the least seen
pairs come next (a greedy orthogonal design). A row depends only on the rows before it, so the first N cases stay the
same if N grows. The id of a case alone determines its content.

ecosystem  lengths 2^k and 2^k - 1 up to 2^20; half uniform in [-5, 5], half normal, mean in [-5, 5], std in [0.1, 2]
l0         lengths in steps of 15 and 16 from 1 (1, 16, 32, 47, 63 ...); normal with mean in [-100, 100], std in [1, 25]
l1, l2     random lengths; 10 % uniform [-0.001, 0.001], 30 % uniform [-5, 5], 40 % normal as l0, 20 % with outliers;
           in l2 every third case has the shape of a model
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import count, product
from operator import add
from typing import Any

from ...model.errors import OracleError

LONGEST = 20  # the ecosystem standard's upper bound of an axis is 2^20
LEAST = 8  # elements of a generated case; fewer carry no information, and shape [1] is a separate scene
# The formats with as many axes as the tensor.
FORMATS = {3: ("ND", "NCL"), 4: ("ND", "NCHW", "NHWC", "HWCN"), 5: ("ND", "NCDHW", "NDHWC")}
FORMS = ("power", "below")  # 2^k and 2^k - 1
# The shares of the distributions, per rule.
SHARES: dict[str, dict[str, int]] = {
    "ecosystem": {"uniform": 1, "normal": 1},
    "l0": {"uniform": 1, "normal": 1},
    "l1": {"tiny": 1, "uniform": 3, "normal": 4, "outliers": 2},
    "l2": {"tiny": 1, "uniform": 3, "normal": 4, "outliers": 2},
}
VOLUMES = {"L0": 5_000, "L1": 10_000, "L2": 30_000}  # cases per operator; at least 200, 700, 700 of them per dtype
_OUTLIER = 1000.0
_TRIES, _ROWS_IN_VAIN = 64, 128  # shapes tried per row; rows in sequence without a new shape


@dataclass(frozen=True)
class Volume:
    """The number of generated cases of an operator, and their rule."""

    rule: str
    cases: int

    @classmethod
    def of(cls, text: str) -> Volume:
        """Parse ``--volume``: L0, L1, L2 or a number of cases by the ecosystem rule."""
        if text.upper() in VOLUMES:
            return cls(text.lower(), VOLUMES[text.upper()])
        if text.isdecimal() and len(text) < 10 and int(text) > 0:
            return cls("ecosystem", int(text))
        raise OracleError(f"--volume {text!r}: must be {', '.join(VOLUMES)} or a number of cases per operator")


@dataclass(frozen=True)
class Row:
    """A generated case: one value of each axis of a family, and the distribution of the drawn operands' values."""

    dtype: str
    shape: tuple[int, ...]
    attrs: Mapping[str, Any]
    format: str
    distribution: str
    variant: str
    name: str = ""  # the parameters as written in the id

    def data(self, operand: str, rule: str) -> dict[str, Any]:
        """Return the generator of an operand's values; mean and std follow from the names of case and operand."""
        draws = Draws(f"{rule}\n{self.name}\n{operand}")
        if self.distribution == "tiny":
            return {"gen": "uniform", "low": -0.001, "high": 0.001}
        # outliers are laid over values of [-5, 5]
        if self.distribution in ("uniform", "outliers"):
            extra = {"outliers": _OUTLIER} if self.distribution == "outliers" else {}
            return {"gen": "uniform", "low": -5.0, "high": 5.0, **extra}
        reach, low, high = (5.0, 0.1, 2.0) if rule == "ecosystem" else (100.0, 1.0, 25.0)
        mean = round(reach * (2 * draws.unit() - 1), 3)
        return {"gen": "normal", "mean": mean, "std": round(low + (high - low) * draws.unit(), 3)}


class Draws:
    """Random integers from hashes of a name: independent of a position in a sequence and of any library's generator."""

    def __init__(self, name: str) -> None:
        self._name, self._block, self._left = name, 0, b""

    def _word(self) -> int:
        if not self._left:
            self._left = hashlib.sha256(f"{self._name}\n{self._block}".encode()).digest()
            self._block += 1
        word, self._left = self._left[:4], self._left[4:]
        return int.from_bytes(word, "little")

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        return (self._word() * bound) >> 32

    def between(self, low: int, high: int) -> int:
        """Return an integer in [low, high]."""
        return low + self.below(high - low + 1)

    def unit(self) -> float:
        """Return a number in [0, 1)."""
        return self._word() / 2.0**32

    def shuffled(self, items: Sequence[Any]) -> list[Any]:
        """Return the items in a random order (Fisher and Yates)."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out


@dataclass(frozen=True)
class Design:
    """The factors of one family: the crossed ones, the balanced ones, and the limits of the shapes.

    ``attributes``: for every rank the combinations of attribute values. ``longer``: the axis that has two elements or
    more, or the attribute that names it. ``models``: shapes of real models; the first axis is the batch.
    """

    name: str  # operator and family: the root of every draw
    rule: str
    dtypes: tuple[str, ...]
    attributes: Mapping[int, Sequence[Mapping[str, Any]]]
    variants: tuple[str, ...]
    longer: str | int | None
    elements: int
    models: tuple[tuple[int, ...], ...] = ()

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the sequence until no new shape can be found."""
        crossed = self._cycle("", self.attributes)
        ranks = {len(m) for m in self.models} & set(self.attributes)
        modelled = self._cycle("models", {r: self.attributes[r] for r in sorted(ranks)}) if ranks else None
        balance, lengths = _Balance(SHARES[self.rule], self.variants), _Lengths(self.name)
        seen: set[str] = set()
        in_vain = 0
        for i in count():
            model = self.rule == "l2" and modelled is not None and i % 3 == 2
            dtype, form, rank, attrs = next(modelled if model and modelled is not None else crossed)
            fixed = (dtype, form, rank, *attrs.items())
            shape_form, distribution, variant = balance.choose(fixed)
            for attempt in range(_TRIES):
                draws = Draws(f"{self.name}\n{self.rule}\n{i}\n{attempt}")
                if model:
                    shape = self._model_shape(rank, draws)
                else:
                    shape = self._shape(rank, shape_form, lengths.next(dtype, shape_form, rank, draws), attrs, draws)
                name = f"{dtype}-{shape}-{sorted(attrs.items())}-{form}-{distribution}-{variant}"
                if math.prod(shape) <= self.elements and name not in seen:
                    seen.add(name)
                    yield Row(dtype, shape, attrs, form, distribution, variant, f"{self.name}-{name}")
                    in_vain = 0
                    break
            else:
                in_vain += 1
                if in_vain == _ROWS_IN_VAIN:
                    return

    def _cycle(self, salt: str, attributes: Mapping[int, Sequence[Mapping[str, Any]]]) -> Iterator[Any]:
        """Cross dtype x format x rank x attributes repeatedly, in a new order each time."""
        crossing = [
            (dtype, form, rank, attrs)
            for rank, combinations in attributes.items()
            for dtype, form, attrs in product(self.dtypes, FORMATS.get(rank, ("ND",)), combinations)
        ]
        for turn in count():
            yield from Draws(f"{self.name}\n{self.rule}\n{salt}\norder\n{turn}").shuffled(crossing)

    def _shape(self, rank: int, form: str, k: int, attrs: Mapping[str, Any], draws: Draws) -> tuple[int, ...]:
        """Return a shape: one axis has about 2^k elements, and the others share the remaining elements."""
        long_axis, longer = self._long_axis(rank, attrs), 4 if self.rule == "l0" else 2  # below 2^4 L0's ladder has 1
        axes = list(range(rank))
        lead = draws.below(rank)
        if k < longer and lead == long_axis:
            lead = (lead + 1 + draws.below(rank - 1)) % rank
        budget = min(self.elements.bit_length() - 1, max(k + draws.below(3), 8 + draws.below(7)))
        exponents = [0] * rank
        exponents[lead] = k
        others = draws.shuffled([a for a in axes if a != lead])
        if long_axis is not None and long_axis != lead:
            others.remove(long_axis)
            others.insert(0, long_axis)
        for place, axis in enumerate(others):
            least = 4 if place == 0 and k < 4 else longer if axis == long_axis else 0
            rest = max(least, budget - sum(exponents))
            exponents[axis] = draws.between(least, min(rest, 10))
        return tuple(self._length(e, form, draws) for e in exponents)

    def _long_axis(self, rank: int, attrs: Mapping[str, Any]) -> int | None:
        if self.longer is None:
            return None
        return (attrs[self.longer] if isinstance(self.longer, str) else self.longer) % rank

    def _length(self, exponent: int, form: str, draws: Draws) -> int:
        if self.rule == "ecosystem":
            return 1 << exponent if form == "power" else max(1, (1 << exponent) - 1)
        if self.rule == "l0":
            return stepped(draws.between(1 << exponent >> 4, (2 << exponent >> 4) - 1)) if exponent > 3 else 1
        return min(1 << LONGEST, draws.between(1 << exponent, (2 << exponent) - 1)) if exponent else 1

    def _model_shape(self, rank: int, draws: Draws) -> tuple[int, ...]:
        models = [m for m in self.models if len(m) == rank]
        model = models[draws.below(len(models))]
        batch = max(1, min(model[0], (self.elements >> 4) // math.prod(model[1:])))  # there are thousands of such cases
        return (draws.between(1, batch), *model[1:])


def stepped(i: int) -> int:
    """Return the i-th length of L0's ladder: from 1 in alternating steps of 15 and 16."""
    return 1 + 31 * (i // 2) + 15 * (i % 2)


@dataclass
class _Balance:
    """Chooses form, distribution and variant so that pairs with all factors chosen before are seen equally often."""

    shares: Mapping[str, int]
    variants: tuple[str, ...]
    seen: dict[Any, int] = field(default_factory=lambda: defaultdict(int))

    def choose(self, fixed: tuple[Any, ...]) -> tuple[str, str, str]:
        chosen = list(fixed)
        factors = (dict.fromkeys(FORMS, 1), self.shares, dict.fromkeys(self.variants, 1))
        picked: list[str] = []
        for factor, weights in enumerate(factors):
            wanted = {v: [1.0 / (1 + self.seen[c, factor, v] / weights[v]) for c in chosen] for v in weights}
            best = max(weights, key=lambda v: reduce(add, wanted[v]))  # sum() rounds otherwise since Python 3.12
            for other in chosen:
                self.seen[other, factor, best] += 1
            chosen.append((factor, best))
            picked.append(best)
        return picked[0], picked[1], picked[2]


class _Lengths:
    """The exponent of the leading axis: each one once per dtype and form, then small ones more often."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._left: dict[tuple[str, str], list[int]] = {}

    def next(self, dtype: str, form: str, rank: int, draws: Draws) -> int:
        left = self._left.setdefault(
            (dtype, form), Draws(f"{self._name}\n{dtype}\n{form}").shuffled(range(LONGEST + 1))
        )
        least = 4 if rank == 1 else 0
        fitting = next((k for k in left if k >= least), None)
        if fitting is None:
            return max(least, min(draws.between(0, LONGEST) for _ in range(3)))
        left.remove(fitting)
        return fitting
