"""Static facts of a formula and its kernels' orders, known before any element: graphs, losses, reach."""

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
from ..traversal import has_rational_branch, names_of, substitute, undefined, walk
from .formula import COUNT, Form, Formula, condition_of, constants_of, named

DEPARTURE = 2.0**-12  # relative: a kernel with a larger distance from the formula computes something else
VANISHING = 2.0**-30  # relative: a smaller number is far below every other part of a bound
SERIES = 50  # elements that MPFR settles in the time of one series of erf or of a logarithm in pairs of numbers
KEPT = 1024  # graphs kept by a process, and their derived data


class Graphs:
    """An operator's graphs for one kind of call.

    ``constants``: operands that are constants. ``numbers``: operands that are no arrays. ``soc``: the SoC of the judged
    kernel, by the name of its form; if empty, no departing order applies. ``dtype``: the dtype that this kernel stores.
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
        own, counted = scheme.own(soc), scheme.counted(soc)
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
        """Return the known values of a formula's operands."""
        names = symbols_of(formula)
        return {k: v for k, v in {**self._known, COUNT: self.count}.items() if k in names}

    def _form(self, form: Form, mean: str) -> Expression:
        if mean == "divided" or COUNT in symbols_of(form.formula):
            return self._graph(form.formula)
        given, factor = self._of(form.formula), ONE / self.count
        if mean != "first":
            return trace(form.formula, given) * factor
        given[self.scheme.gradient] = symbol(self.scheme.gradient) * factor
        return trace(form.formula, given)

    def form(self, kernel: str) -> Expression:
        """Return the form of a SoC's kernel."""
        result = named(self.forms, kernel)
        return next(iter(self.forms.values())) if result is None else result

    def summed(self, kernel: str) -> tuple[Expression, Expression]:
        """Return the terms that a SoC's kernel sums, and the factor of the sum."""
        form = self.scheme.own(kernel)
        if form is None or form.mean != "sum" or self.count is ONE:
            return self.form(kernel), ONE
        return trace(form.formula, self._of(form.formula)), ONE / self.count

    def computed_in(self, root: Expression, operands: Operands) -> tuple[Expression, Operands]:
        """Return the graph that a kernel computes in a 16-bit type, and its operands. The host computes the parts that
        depend on the count alone, and rounds them to the type once."""
        if COUNT not in operands or self.native is None:
            return root, operands
        alone = [n for n in walk(root) if n.args and names_of(n) == (COUNT,)]
        inner = {id(a) for n in alone for a in n.args}
        made = {f"of {COUNT} {k}": n for k, n in enumerate(n for n in alone if id(n) not in inner)}
        count = {COUNT: np.float64(operands[COUNT])}
        numbers = {name: simulate(n, count, np.float64)[()] for name, n in made.items()}
        return substitute(root, {n: symbol(name) for name, n in made.items()}), {**operands, **numbers}

    def natively(self, operands: Operands, narrow: Operands) -> Array:
        """Return the answer of a SoC's kernel that computes in its operands' 16-bit type. ``narrow``: operands that are
        looked up (see :mod:`..programs`)."""
        assert self.native is not None
        root, given = self.computed_in(self.native, operands)
        rounded = {n: v.astype(self.dtype) if isinstance(v, np.ndarray) else v for n, v in given.items()}
        return programs.simulated(root, rounded, narrow, self.dtype, frozenset())

    def facts_of(self, formats: Iterable[tuple[str, str]]) -> Facts:
        """Return additional facts about operands of some formats, by symbol: their small number of digits."""
        return Facts([COUNT], {name: FORMATS[fmt].mant + 1 for name, fmt in formats})

    @cached_property
    def evaluation(self) -> tuple[float, Expression]:
        """The possible loss of the float64 evaluation: relative (with 2u for an interval's rounded ends), absolute."""
        arithmetic = UNDERFLOWING if self.is_fragile else FLOAT64
        (lost,) = losses([self.value], arithmetic, self.facts, frozenset([COUNT]))
        absolute = lost.running(abs(self.value))
        absolute = plus(absolute, lost.underflow) if self.is_fragile else absolute
        return 0.0 if lost.is_zero else lost.relative + 2 * FLOAT64.unit, absolute

    @property
    def is_fragile(self) -> bool:
        """Return whether a step that underflows in float64 can change a result; then only slow ways are used."""
        return is_fragile(self.value)

    @property
    def loses_signs(self) -> bool:
        """Return whether a zero from float64 may have the wrong sign."""
        return loses_signs(self.value)

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """The operands to which the result is proportional: if one is zero, the result is zero, with IEEE's sign."""
        return tuple(name for name in names_of(self.value) if is_linear(self.value, name))

    @lru_cache(maxsize=KEPT)  # noqa: B019  graphs live as long as the process, and share it
    def bound(self, arithmetic: Arithmetic) -> Loss:
        """Return the possible loss of a right kernel before its last rounding: the worst of all orders."""
        count = frozenset([COUNT])
        result = losses(list(self.orders), arithmetic, self.facts, count)
        if self.native is not None:
            # a count's reciprocal is a subnormal float16 beyond 16384
            result += losses([self.native], NARROW[self.dtype], self.facts, rounded=self.numbers - count)
        return worst(result)

    @lru_cache(maxsize=KEPT)  # noqa: B019  graphs live as long as the process, and share it
    def running(self, arithmetic: Arithmetic, size: Expression | None = None) -> Expression:
        """Return a right kernel's possible loss, except its purely relative part and underflow; ``size``: of the
        value."""
        return self.bound(arithmetic).running(abs(self.value) if size is None else size)

    @lru_cache(maxsize=KEPT)  # noqa: B019  graphs live as long as the process, and share it
    def undecided(self, arithmetic: Arithmetic) -> tuple[Doubt, ...]:
        """Return the conditions under which right kernels can choose differently: they compare rounded quantities."""
        count = frozenset([COUNT])
        result = doubts(list(self.orders), arithmetic, self.facts, count, frozenset())
        if self.native is not None:
            result += doubts([self.native], NARROW[self.dtype], self.facts, count, self.numbers - count)
        return result

    @property
    def may_depart(self) -> bool:
        """Return whether the SoC's kernel computes something else, or in a 16-bit type."""
        return self.departing is not None or self.native is not None

    @cached_property
    def departure(self) -> Expression:
        """The distance between the SoC's kernel and the formula, in real numbers."""
        return ZERO if self.departing is None else abs(self.departing - self.value)

    @lru_cache(maxsize=KEPT)  # noqa: B019  graphs live as long as the process, and share it
    def smooth(self, arithmetic: Arithmetic) -> tuple[str, str, Expression, Expression] | None:
        """Return table data if every order is the gradient times a function of one other operand: both names and, per
        unit of gradient, a right kernel's possible loss relative to the value and absolutely. Return None otherwise, if
        the loss is purely relative, or if rounding may decide a comparison (a table allows that nearby)."""
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
        """The largest magnitude of any step of any order."""
        result: dict[Expression, Expression] = {}
        for step in walk(*self.orders):
            result[step] = _reach(step, result)
        reached = dict.fromkeys(result[order] for order in self.orders)
        return reduce(larger, reached, ZERO)

    @cached_property
    def undefined(self) -> Expression | None:
        """The condition under which the formula of finite operands certainly has no value."""
        return undefined(self.value)

    @cached_property
    def refine_min_elements(self) -> float:
        """The number of elements from which doubtful ones get a second check; infinity if there is none."""
        if self.is_fragile:
            return math.inf
        if has_rational_branch(self.value) or double_double.is_cheap(self.value):
            return 1
        return SERIES if double_double.supports(self.value) else math.inf

    @cached_property
    def may_be_exact(self) -> bool:
        """Return whether every order has a way without irrational steps."""
        return all(has_rational_branch(order) for order in self.orders)


@lru_cache(maxsize=KEPT)
def is_fragile(value: Expression) -> bool:
    """Return whether a float64 underflow can change a graph's result, as in log(exp(x)) or exp(x) > exp(y)."""
    lost = _underflows(value)
    if not is_negligible(lost[value], COUNT):
        return True
    decided = [node for node in lost if node.op in COMPARISONS or node.op == "sign"]
    return any(_is_near_zero(node, [lost[a] for a in node.args]) for node in decided)


@lru_cache(maxsize=KEPT)
def loses_signs(value: Expression) -> bool:
    """Return whether float64 can give a zero of the wrong sign: the terms of a sum can both vanish, one by underflow,
    as in 0 - exp(x) for very negative x."""
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
    """Return the possible underflow error in float64 of each step of a graph."""
    nodes, count = walk(value), frozenset([COUNT])
    result = losses(list(nodes), UNDERFLOWING, Facts(count), count)
    return {node: lost.underflow for node, lost in zip(nodes, result, strict=True)}


def _is_near_zero(decision: Expression, underflows: list[Expression]) -> bool:
    """Return whether an underflow may decide a comparison or a sign. Next to a constant other than 0 it does not."""
    if all(lost is ZERO for lost in underflows):
        return False
    constants = [a for a in decision.args if a.is_constant and a is not ZERO]
    return not (constants and all(is_negligible(lost, COUNT) for lost in underflows))


def _reach(step: Expression, of: Mapping[Expression, Expression]) -> Expression:
    """Return the largest magnitude of the steps before a step. A branch that a condition of operands alone does not
    choose contributes nothing."""
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
    """Return whether operands are multiplied with one another."""
    return any(n.op == "*" and all(names_of(a) for a in n.args) for n in walk(node))


_graphs = lru_cache(maxsize=KEPT)(Graphs)


def graphs_with(scheme: Formula, known: frozenset[tuple[str, int]] = frozenset(), *, mean: bool = False) -> Graphs:
    """Return the graphs of calls with some constant operands, with or without a mean."""
    return _graphs(scheme, known, frozenset(), mean)


def graphs_of(scheme: Formula, operands: Operands, soc: str = "", dtype: str = "") -> Graphs:
    """Return the graphs for the given operands: absent ones are 1, and integers (flags) are constants too."""
    known = constants_of(scheme, operands)
    numbers = frozenset(name for name, value in operands.items() if not isinstance(value, np.ndarray))
    return _graphs(scheme, known, numbers, COUNT in operands, soc, dtype)


def mean_loss(operands: Operands, rank: int) -> float:
    """Return the possible relative loss of a right kernel by a mean's divisor; 0 without a mean. The divisor may come
    from one division per dimension, each off by 2u; 4u are for the other steps of its factor (docs/bounds.md)."""
    return (4 + 2 * rank) * FLOAT32.unit if COUNT in operands else 0.0
