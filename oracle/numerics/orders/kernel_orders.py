"""What follows from a formula and its kernels' orders before any element is looked at: graphs, losses, reach."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache, reduce
from typing import Any

import numpy as np

from ...model.call import Array
from ...model.dtypes import FORMATS
from ...model.errors import OracleError
from .. import double_double, programs
from ..bounds.building import Loss, larger, plus, worst
from ..bounds.exact_steps import Facts
from ..bounds.losses import Doubt, doubts, losses
from ..bounds.ranges import is_away_from_zero, is_linear, is_negligible
from ..expressions import COMPARISONS, ONE, ZERO, Expression, Function, place_of, symbol, symbols_of, trace, where
from ..floats.rounding import FLOAT32, FLOAT64, NARROW, UNDERFLOWING, Arithmetic
from ..programs import Operands, simulate
from ..traversal import has_rational_way, names_of, substitute, undefined, walk
from .formula import COUNT, Form, Formula, condition_of, constants_of, named

DEPARTURE = 2.0**-12  # relative: a kernel that departs from the formula by more computes something else
VANISHING = 2.0**-30  # relative: less is far below every other figure of a bound
SERIES = 50  # elements that MPFR settles in the time that pairs of numbers take for a series of erf or of a logarithm
KEPT = 1024  # graphs of a process, and what follows from them


class Graphs:
    """An operator's graphs for one kind of call.

    ``constants``: operands that are. ``numbers``: operands that are no arrays. ``soc``: whose kernel is judged, by the
    name of its form; none: nobody's own departures count. ``dtype``: what that kernel stores.
    """

    def __init__(
        self,
        scheme: Formula,
        constants: frozenset[tuple[str, int]],
        numbers: frozenset[str],
        mean: bool,
        soc: str = "",
        dtype: str = "",
    ) -> None:
        self.scheme, self.numbers, self.dtype = scheme, numbers, dtype
        known: dict[str, Any] = dict(constants)
        self.count = symbol(COUNT) if mean else ONE
        self.facts = Facts([COUNT])
        self._known = known
        self.value = self._graph(scheme.formula)
        if self.value.is_condition:
            text = f"{self.value!r} is a condition and no number: write where({self.value!r}, 1, 0)"
            raise OracleError(f"{place_of(scheme.formula)}: {text}")
        self.specials = None if scheme.specials is None else self._graph(scheme.specials)
        self.forms = {name: self._form(form, form.mean) for name, form in scheme.written.items()}
        own, counted = named(scheme.written, soc), scheme.counted(soc)
        orders = [self.forms[name] for name in counted]
        if mean:
            kinds = ("last", "divided", *(("first",) if scheme.gradient in scheme.symbols else ()))
            orders += [self._form(form, kind) for form in counted.values() for kind in kinds]
        means = {form.mean == "sum" for form in counted.values()}
        #: Whether orders multiply the terms by the mean's factor, and whether any multiply their sum.
        self.factored, self.factored_sum = mean and False in means, mean and True in means
        self.orders = tuple(dict.fromkeys(orders))
        self.native = named(self.forms, soc) if own is not None and dtype in own.native else None
        self.departing = named(self.forms, soc) if own is not None and own.departs else None
        condition = condition_of(scheme, soc, dtype)
        self.unspecified = None if condition is None else trace(condition, self._of(condition))
        if not (self.unspecified is None or self.unspecified.is_condition):
            text = "where an answer is unspecified is a condition, as x > 3 or equal(x, 3); this is a number"
            raise OracleError(f"{place_of(scheme.formula)}: unspecified: {self.unspecified!r}: {text}")

    def _graph(self, formula: Function) -> Expression:
        result = trace(formula, self._of(formula))
        return result if COUNT in symbols_of(formula) else result / self.count

    def _of(self, formula: Function) -> dict[str, Any]:
        """What is known of a formula's operands."""
        names = symbols_of(formula)
        return {k: v for k, v in {**self._known, COUNT: self.count}.items() if k in names}

    def _form(self, form: Form, mean: str) -> Expression:
        given = self._of(form.formula)
        if COUNT in symbols_of(form.formula):
            return trace(form.formula, given)
        factor = ONE / self.count
        if mean == "first":
            given[self.scheme.gradient] = symbol(self.scheme.gradient) * factor
        result = trace(form.formula, given)
        return result / self.count if mean == "divided" else result if mean == "first" else result * factor

    def form(self, kernel: str) -> Expression:
        """Return the form of a SoC's kernel."""
        result = named(self.forms, kernel)
        return next(iter(self.forms.values())) if result is None else result

    def summed(self, kernel: str) -> tuple[Expression, Expression]:
        """Return what a SoC's kernel sums, and what it multiplies the sum by."""
        form = named(self.scheme.written, kernel)
        if form is None or form.mean != "sum" or self.count is ONE:
            return self.form(kernel), ONE
        return trace(form.formula, self._of(form.formula)), ONE / self.count

    def computed_in(self, root: Expression, operands: Operands) -> tuple[Expression, Operands]:
        """Return a graph that a kernel computes in a 16-bit type, and operands: what is made of the count alone is the
        host's, which rounds it to the type once."""
        if COUNT not in operands or self.native is None:
            return root, operands
        alone = [n for n in walk(root) if n.args and names_of(n) == (COUNT,)]
        inner = {id(a) for n in alone for a in n.args}
        made = {f"of {COUNT} {k}": n for k, n in enumerate(n for n in alone if id(n) not in inner)}
        count = {COUNT: np.float64(operands[COUNT])}
        numbers = {name: simulate(n, count, np.float64)[()] for name, n in made.items()}
        return substitute(root, {n: symbol(name) for name, n in made.items()}), {**operands, **numbers}

    def natively(self, operands: Operands, narrow: Operands) -> Array:
        """Return what the SoC's kernel answers that computes in its operands' 16-bit type. ``narrow``: operands that
        are looked up (see :mod:`..programs`)."""
        assert self.native is not None
        root, given = self.computed_in(self.native, operands)
        rounded = {n: v.astype(self.dtype) if isinstance(v, np.ndarray) else v for n, v in given.items()}
        return programs.simulated(root, rounded, narrow, self.dtype, frozenset())

    def facts_of(self, formats: Iterable[tuple[str, str]]) -> Facts:
        """What is known beside of operands of some formats, by symbol: how few digits they have."""
        return Facts([COUNT], {name: FORMATS[fmt].mant + 1 for name, fmt in formats})

    @cached_property
    def evaluation(self) -> tuple[float, Expression]:
        """What the float64 evaluation may lose: relative (with 2u for the rounding of an interval's ends), absolute."""
        arithmetic = UNDERFLOWING if self.is_fragile else FLOAT64
        (lost,) = losses([self.value], arithmetic, self.facts, frozenset([COUNT]))
        absolute = lost.running(abs(self.value))
        absolute = plus(absolute, lost.underflow) if self.is_fragile else absolute
        return 0.0 if lost.is_zero else lost.relative + 2 * FLOAT64.unit, absolute

    @property
    def is_fragile(self) -> bool:
        """Whether a step that underflows in float64 may change a result; then only slow ways are taken."""
        return is_fragile(self.value)

    @property
    def loses_signs(self) -> bool:
        """Whether a zero that float64 answers may have the wrong sign."""
        return loses_signs(self.value)

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """The operands that the formula is in proportion to: where one is zero, the result is, with IEEE's sign."""
        return tuple(name for name in names_of(self.value) if is_linear(self.value, name))

    @lru_cache(maxsize=KEPT)  # noqa: B019  graphs live as long as the process, and share it
    def bound(self, arithmetic: Arithmetic) -> Loss:
        """What a right kernel may lose before its last rounding: the worst of all orders."""
        count = frozenset([COUNT])
        result = losses(list(self.orders), arithmetic, self.facts, count)
        if self.native is not None:
            # a count's reciprocal is a subnormal float16 beyond 16384
            result += losses([self.native], NARROW[self.dtype], self.facts, rounded=self.numbers - count)
        return worst(result)

    @lru_cache(maxsize=KEPT)  # noqa: B019  graphs live as long as the process, and share it
    def running(self, arithmetic: Arithmetic, size: Expression | None = None) -> Expression:
        """What a right kernel may lose that is not merely relative, less what underflows. ``size``: of the value."""
        return self.bound(arithmetic).running(abs(self.value) if size is None else size)

    @lru_cache(maxsize=KEPT)  # noqa: B019  graphs live as long as the process, and share it
    def undecided(self, arithmetic: Arithmetic) -> tuple[Doubt, ...]:
        """Where right kernels may choose differently, for they compare rounded quantities."""
        count = frozenset([COUNT])
        result = doubts(list(self.orders), arithmetic, self.facts, count, frozenset())
        if self.native is not None:
            result += doubts([self.native], NARROW[self.dtype], self.facts, count, self.numbers - count)
        return result

    @property
    def may_depart(self) -> bool:
        """Whether the SoC's kernel computes something else, or in a type of 16 bits."""
        return self.departing is not None or self.native is not None

    @cached_property
    def departure(self) -> Expression:
        """How far the SoC's kernel computes from the formula, in real numbers."""
        return ZERO if self.departing is None else abs(self.departing - self.value)

    @lru_cache(maxsize=KEPT)  # noqa: B019  graphs live as long as the process, and share it
    def smooth(self, arithmetic: Arithmetic) -> tuple[str, str, Expression, Expression] | None:
        """Where every order is the gradient times a function of one other operand: their names, and per unit of
        gradient what a right kernel may lose relative to the value and absolutely. None where it is not so, where
        nothing runs, or where rounding may decide a comparison (a table would allow that near it too)."""
        lost = self.bound(arithmetic)
        gradient = self.scheme.gradient
        names = set(names_of(*self.orders))
        if lost.absolute is ZERO is lost.scaled or len(names) != 2:
            return None
        if not all(is_linear(order, gradient) for order in self.orders):
            return None
        if any(n.op == "erfc" or (n.op == "exp" and _curved(n.args[0])) for n in walk(*self.orders)):
            return None  # e^(x^2) changes by too much within a cell
        known = {id(node) for node in walk(*self.orders)}
        if any(n.is_condition and id(n) not in known for n in walk(lost.absolute, lost.scaled)):
            return None
        (other,) = names - {gradient}
        unit = {symbol(gradient): ONE}
        return gradient, other, substitute(lost.scaled, unit), substitute(lost.absolute, unit)

    @cached_property
    def reach(self) -> Expression:
        """The largest magnitude on the way of any order."""
        result: dict[Expression, Expression] = {}
        for step in walk(*self.orders):
            result[step] = _reach(step, result)
        reached = dict.fromkeys(result[order] for order in self.orders)
        return reduce(larger, reached, ZERO)

    @cached_property
    def undefined(self) -> Expression | None:
        """Where the formula has no value for sure, of finite operands."""
        return undefined(self.value)

    @cached_property
    def second_look(self) -> float:
        """From how many elements on a second look at doubtful ones is taken; infinity if there is none."""
        if self.is_fragile:
            return math.inf
        if has_rational_way(self.value) or double_double.is_cheap(self.value):
            return 1
        return SERIES if double_double.supports(self.value) else math.inf

    @cached_property
    def may_be_exact(self) -> bool:
        """Whether every order has a way without irrational steps."""
        return all(has_rational_way(order) for order in self.orders)


@lru_cache(maxsize=KEPT)
def is_fragile(value: Expression) -> bool:
    """Whether a step that underflows in float64 may change a graph's result, as in log(exp(x)) or exp(x) > exp(y)."""
    lost = _underflows(value)
    if not is_negligible(lost[value], COUNT):
        return True
    decided = [node for node in lost if node.op in COMPARISONS or node.op == "sign"]
    return any(_is_near_zero(node, [lost[a] for a in node.args]) for node in decided)


@lru_cache(maxsize=KEPT)
def loses_signs(value: Expression) -> bool:
    """Whether float64 may answer a zero of the wrong sign: for a sum both of whose terms may vanish, one by underflow,
    as 0 - exp(x) does far below."""
    lost, facts = _underflows(value), Facts([COUNT])

    def may(node: Expression) -> bool:
        if node.op not in ("+", "-") or all(lost[term] is ZERO for term in node.args):
            return False
        one, other = map(facts.sign, node.args)
        same_sign = one != 0 and one == (other if node.op == "+" else -other)
        return not same_sign and not any(is_away_from_zero(term, COUNT) for term in node.args)

    return any(map(may, lost))


@lru_cache(maxsize=KEPT)
def _underflows(value: Expression) -> Mapping[Expression, Expression]:
    """What underflow in float64 may make of each step of a graph."""
    nodes, count = walk(value), frozenset([COUNT])
    result = losses(list(nodes), UNDERFLOWING, Facts(count), count)
    return {node: lost.underflow for node, lost in zip(nodes, result, strict=True)}


def _is_near_zero(decision: Expression, underflows: list[Expression]) -> bool:
    """Whether what underflows may decide a comparison, or a sign: beside a constant other than 0 it does not."""
    if all(lost is ZERO for lost in underflows):
        return False
    beside = [a for a in decision.args if a.is_constant and a is not ZERO]
    return not (beside and all(is_negligible(lost, COUNT) for lost in underflows))


def _reach(step: Expression, of: Mapping[Expression, Expression]) -> Expression:
    """The largest magnitude on the way to a step: of what a condition of operands alone does not choose, nothing."""
    if step.is_constant or all(name == COUNT for name in names_of(step)):
        return ZERO
    if step.op == "where" and all(
        not arg.args for node in walk(step.args[0]) for arg in node.args if not arg.is_condition
    ):
        condition, one, other = step.args
        return larger(of[condition], of[one] if of[one] is of[other] else where(condition, of[one], of[other]))
    inner = reduce(larger, dict.fromkeys(of[arg] for arg in step.args), ZERO)
    return inner if step.is_condition or step.op == "where" else larger(abs(step), inner)


def _curved(node: Expression) -> bool:
    """Whether operands are multiplied with one another."""
    return any(n.op == "*" and all(names_of(a) for a in n.args) for n in walk(node))


_graphs = lru_cache(maxsize=KEPT)(Graphs)


def graphs_with(scheme: Formula, known: frozenset[tuple[str, int]] = frozenset(), *, mean: bool = False) -> Graphs:
    """Return the graphs of calls in which some operands are constants, with or without a mean."""
    return _graphs(scheme, known, frozenset(), mean)


def graphs_of(scheme: Formula, operands: Operands, soc: str = "", dtype: str = "") -> Graphs:
    """Return the graphs for the operands that are given: absent ones are 1, and integers (flags) constants too."""
    known = constants_of(scheme, operands)
    numbers = frozenset(name for name, value in operands.items() if not isinstance(value, np.ndarray))
    return _graphs(scheme, known, numbers, COUNT in operands, soc, dtype)


def mean_loss(operands: Operands, rank: int) -> float:
    """Return what a mean's divisor may cost a right kernel, relative; 0 without a mean. The divisor may be made of a
    division per dimension, each off by 2u; 4u are for what else makes a factor of it (docs/bounds.md)."""
    return (4 + 2 * rank) * FLOAT32.unit if COUNT in operands else 0.0
