"""The possible loss of a floating-point evaluation, derived from the steps of a formula's graph.

For every node n the computed value differs from the exact one by at most ``(relative + scaled) * |n| + absolute +
underflow``. ``relative`` is a number. The others are graphs, built by the rules below and simplified as they grow. So a
product of exact operands costs nothing, and a cancellation costs exactly its operands' errors. The graphs are evaluated
together with the value (a *running* bound: every element has its own). docs/bounds.md derives the rules.

    a + b, signs known to be equal    relative = max + u
    a + b otherwise                   absolute = the errors of a and of b, relative = u
    a * b, a / b                      relative and scaled add up; absolute errors are multiplied by the other operand
    exp(a)                            scaled = e^(the error of a) - 1
    f(a)                              absolute = |f'| times the error of a, relative = the function's accuracy
    1 - s, s = a / (a + c)            absolute = a share c / (a + c) of their errors, at most a few times 1 - s
    where(c, a, b)                    of the chosen one; if rounding may decide c, both and the distance of a and b
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..exact.enclosures import constant_value
from ..expressions import (
    COMPARISONS,
    ONE,
    ROUNDINGS,
    ZERO,
    Expression,
    constant,
    equal,
    exp,
    expm1,
    maximum,
    minimum,
    sqrt,
    symbol,
    where,
)
from ..floats.rounding import FLOAT64, NARROW, Arithmetic
from ..traversal import walk
from .building import EXACT, SECOND_ORDER, Loss, evened, larger, over, picked, plus, times, together, worst
from .exact_steps import Facts, are_indices, constant_bits, grid, is_clamped, is_power_of_two, rest_of_sum

FAR = 2.0**10  # a larger relative error: only numbers that are zero or infinite in every format have it
NO_BOUND = 2.0**300  # an error beyond float32: the possible loss of a quotient if its divisor is read as 0


def losses(
    roots: list[Expression],
    arithmetic: Arithmetic,
    facts: Facts | None = None,
    scalars: frozenset[str] = frozenset(),
    rounded: frozenset[str] = frozenset(),
    inexact: Mapping[str, str] | None = None,
) -> list[Loss]:
    """Return the losses of several graphs. ``scalars``: operands that are numbers far from underflow. ``rounded``:
    operands that the arithmetic's type may not represent. ``inexact``: operands with an error, mapped to the symbols of
    their absolute errors."""
    rules = _Rules(arithmetic, facts or Facts(), scalars, rounded, inexact or {})
    for node in walk(*roots):
        rules.known_losses[id(node)] = rules.of(node)
    return [rules.known_losses[id(root)] for root in roots]


class Doubt(NamedTuple):
    """A condition under which rounding may decide a comparison, and its two sides. If neither side is rounded, rounding
    does not decide. A sign has no sides: kernels return 0, 1 or -1 even for an exact zero."""

    condition: Expression
    sides: tuple[Expression, ...]


def doubts(
    roots: list[Expression], arithmetic: Arithmetic, facts: Facts, scalars: frozenset[str], rounded: frozenset[str]
) -> tuple[Doubt, ...]:
    """Return the doubts about the choices and signs of some graphs; operands as for :func:`losses`."""
    rules = _Rules(arithmetic, facts, scalars, rounded)
    nodes = walk(*roots)
    for node in nodes:
        rules.known_losses[id(node)] = rules.of(node)
    compared = [(rules.doubt(node), node.args) for node in nodes if node.op in COMPARISONS]
    compared += [(rules.unsigned(node.args[0]), ()) for node in nodes if node.op == "sign"]
    return tuple(dict.fromkeys(Doubt(result, sides) for result, sides in compared if result is not None))


@dataclass
class _Rules:
    arithmetic: Arithmetic
    facts: Facts
    scalars: frozenset[str]
    rounded: frozenset[str] = frozenset()
    inexact: Mapping[str, str] = field(default_factory=dict)
    known_losses: dict[int, Loss] = field(default_factory=dict)

    def of(self, node: Expression) -> Loss:
        if node.op == "symbol" and node.value in self.inexact:
            return Loss(0.0, symbol(self.inexact[str(node.value)]), ZERO)
        if node.op == "symbol":
            return Loss(self.arithmetic.unit, ZERO, self.quantum(node)) if node.value in self.rounded else EXACT
        if node.is_constant:
            rounded = node.op != "constant" or constant_bits(node.value) > self.arithmetic.digits
            return Loss(self.arithmetic.unit, ZERO, ZERO) if rounded else EXACT
        if node.is_condition:
            return EXACT  # ``_where`` handles wrong decisions
        rule = getattr(self, f"_{_NAMES[node.op]}")
        made: Loss = rule(node, *node.args)
        return made

    @property
    def of_device(self) -> bool:
        """Return whether this bounds a kernel. The golden's own evaluation can use wider bounds."""
        return self.arithmetic.digits < FLOAT64.digits

    def loss(self, node: Expression) -> Loss:
        return self.known_losses[id(node)]

    def size(self, node: Expression) -> Expression:
        """Return |node|, without an operation if the sign is known."""
        sign = self.facts.sign(node)
        return node if sign > 0 else -node if sign < 0 else abs(node)

    def error(self, node: Expression) -> Expression:
        """Return the whole error of a node, without underflow."""
        lost, size = self.loss(node), self.size(node)
        return plus(times(constant(lost.relative), size), lost.running(size))

    def accuracy(self, op: str) -> float:
        return self.arithmetic.unit * self.arithmetic.accuracy.get(op, 1)

    def quantum(self, node: Expression) -> Expression:
        """Return the possible loss by underflow of this operation."""
        if not self.arithmetic.quantum or all(n.op != "symbol" or n.value in self.scalars for n in walk(node)):
            return ZERO
        if grid(node) > self.arithmetic.normal:
            return ZERO
        least = constant(self.arithmetic.quantum)
        if node.op not in self.arithmetic.flushing:
            return least
        size = self.size(node)
        return plus(least, where(size < constant(self.arithmetic.tiny * SECOND_ORDER), size, ZERO))

    # ---- arithmetic ----

    def _sum(self, node: Expression, a: Expression, b: Expression) -> Loss:
        if node.op == "-" and a is b:
            return EXACT
        one, other, unit = self.loss(a), self.loss(b), self.arithmetic.unit
        underflow = plus(one.underflow, other.underflow)
        signs = self.facts.sign(a) * self.facts.sign(b) * (1 if node.op == "+" else -1)
        if signs > 0:
            relative = (max(one.relative, other.relative) + unit) * SECOND_ORDER
            scaled = larger(self._weighted(a, b), self._weighted(b, a))
            return Loss(relative, plus(one.absolute, other.absolute), underflow, scaled)
        absolute = times(constant(SECOND_ORDER), plus(self._error_in_difference(a, b), self._error_in_difference(b, a)))
        return Loss(unit * SECOND_ORDER if absolute is not ZERO else unit, absolute, underflow)

    def _weighted(self, node: Expression, other: Expression) -> Expression:
        """Return the scaled error of a term of a sum, relative to the sum: small if the other term is larger."""
        scaled, size, other_size = self.loss(node).scaled, self.size(node), self.size(other)
        if scaled is ZERO:
            return ZERO
        little = over(minimum(scaled, constant(FAR)), ONE + over(other_size, size))
        return little if other.is_constant else where(other_size > size, little, scaled)

    def _error_in_difference(self, node: Expression, other: Expression) -> Expression:
        """Return the error of a term of a difference. A term that saturates at 1, next to a constant 1, is itself
        rounded to 1 in the end. Its error is at most a few times its distance from 1."""
        if other.op != "constant" or other.value not in (1, -1):
            return self.error(node)
        share, short = self._error_of_share(node) if self.of_device else None, self._shortfall(node)
        error = self.error(node) if share is None else share
        return error if short is None else minimum(error, short)

    def _error_of_share(self, node: Expression) -> Expression | None:
        """Return the error of a share a / (a + c), of its square or of a choice of shares; None for other nodes."""
        if node.op in ("neg", "abs"):
            return self._error_of_share(node.args[0])
        if node.op == "where" and self.doubt(node.args[0]) is None:
            known = [known for known in map(self._error_of_share, node.args[1:]) if known is not None]
            return where(node.args[0], *known) if len(known) == 2 else None
        if node.op == "*" and node.args[0] is node.args[1]:
            error = self._error_of_share(node.args[0])
            twice = None if error is None else times(constant(2 * SECOND_ORDER), times(self.size(node.args[0]), error))
            return None if twice is None else plus(twice, times(constant(self.arithmetic.unit), self.size(node)))
        lost = self._of_parts(node.args[0], node.args[1]) if node.op == "/" else None
        rounded = constant(self.arithmetic.unit + self.accuracy("/"))
        return None if lost is None else times(times(constant(SECOND_ORDER), self.size(node)), plus(rounded, lost))

    def _of_parts(self, a: Expression, total: Expression) -> Expression | None:
        """Return the relative error of a share a / (a + c) from those of a and c: they count as much as the share of c,
        little if a is larger. None if the total is no such sum of positive numbers with relative errors only."""
        c = rest_of_sum(a, total)
        if c is None or not (self.facts.sign(a) > 0 and self.facts.sign(c) > 0):
            return None
        one, other = self.loss(a), self.loss(c)
        if not one.absolute is ZERO is other.absolute:
            return None
        both = plus(constant(one.relative + other.relative), plus(one.scaled, other.scaled))
        return over(minimum(both, constant(FAR)), ONE + over(a, c))

    def _shortfall(self, node: Expression) -> Expression | None:
        """Return a multiple of 1 - |node|, computed without cancellation: an upper bound of a right kernel's error."""
        if node.op in ("neg", "abs"):
            return self._shortfall(node.args[0])
        if node.op == "tanh":  # 1 - tanh a < 2 e^(-2 a)
            return times(constant(40), exp(constant(-2) * self.size(node.args[0])))
        if node.op == "*" and node.args[0] is node.args[1]:
            short = self._shortfall(node.args[0])
            return None if short is None else times(constant(8), short)
        if node.op == "where":
            shorts = [self._shortfall(a) for a in node.args[1:]]
            return None if None in shorts else where(node.args[0], *(s for s in shorts if s is not None))
        a, *others = node.args or (node,)
        c = rest_of_sum(a, others[0]) if node.op == "/" else None
        if c is not None and self.facts.sign(a) > 0 and self.facts.sign(c) > 0:
            scaled = minimum(plus(self.loss(a).scaled, self.loss(c).scaled), constant(FAR))
            return times(plus(constant(5), scaled), over(ONE, ONE + over(a, c)))
        return None

    def _product(self, node: Expression, a: Expression, b: Expression) -> Loss:
        one, other = self.loss(a), self.loss(b)
        exact = self.facts.bits(node) <= self.arithmetic.digits or is_power_of_two(a) or is_power_of_two(b)
        relative = one.relative + other.relative + (0.0 if exact else self.arithmetic.unit)
        scaled = together(one.scaled, other.scaled)
        lost = self._of_parts(a, b.args[1]) if self.of_device and b.op == "/" else None
        if lost is not None:  # a * (n / (a + c)): errors of a cancel
            top = self.loss(b.args[0])
            relative = top.relative + 2 * self.arithmetic.unit + self.accuracy("/")
            scaled = together(top.scaled, lost)
        if relative > self.arithmetic.unit:
            relative *= SECOND_ORDER
        reach = self.size(a)
        if self.of_device:  # the only term if both are 0, as for a row of equal numbers minus its mean
            reach = plus(reach, one.absolute)
        return Loss(
            relative,
            plus(times(self.size(b), one.absolute), times(reach, other.absolute)),
            plus(plus(times(self.size(b), one.underflow), times(self.size(a), other.underflow)), self.quantum(node)),
            scaled,
        )

    def _quotient(self, node: Expression, a: Expression, b: Expression) -> Loss:
        one, other = self.loss(a), self.loss(b)
        relative = one.relative + other.relative + (0.0 if is_power_of_two(b) else self.accuracy("/"))
        if relative > self.accuracy("/"):
            relative *= SECOND_ORDER

        def scaled(top: Expression, bottom: Expression, least: Expression) -> Expression:
            return over(plus(top, times(self.size(node), bottom)), least)

        absolute = scaled(one.absolute, other.absolute, self._least(b))
        underflow = plus(scaled(one.underflow, other.underflow, self.size(b)), self.quantum(node))
        underflow = plus(underflow, self._read_as_zero(node, a, b))
        return Loss(relative, absolute, underflow, together(one.scaled, other.scaled))

    def _least(self, node: Expression) -> Expression:
        """Return the smallest possible size of a divisor with its error: 0 if it may change its sign."""
        size, lost = self.size(node), self.loss(node).absolute
        if not self.of_device or lost is ZERO:
            return size
        least = where(lost < size, size - lost, ZERO)
        floor = self._floor(node)
        return least if floor is None or floor is ZERO else maximum(least, floor)

    def _floor(self, node: Expression) -> Expression | None:
        """Return a lower bound of any kernel's result for a node, for any losses of its parts (epsilon for a variance
        plus epsilon). None: no bound is known."""
        if node.is_constant or (node.op == "symbol" and self.loss(node).is_zero):
            return node
        if node.op == "sqrt":
            inner = self._floor(node.args[0])
            return None if inner is None else sqrt(maximum(inner, ZERO))
        if node.op == "+":
            one, other = map(self._floor, node.args)
            return None if one is None or other is None else plus(one, other)
        is_square = node.op == "*" and node.args[0] is node.args[1]
        return ZERO if is_square or self.facts.sign(node) > 0 else None

    def _read_as_zero(self, node: Expression, a: Expression, b: Expression) -> Expression:
        """Return the loss of a division that reads subnormal operands as 0."""
        if node.op not in self.arithmetic.flushing:
            return ZERO
        lost, tiny = ZERO, constant(self.arithmetic.tiny * SECOND_ORDER)
        for operand, size in ((a, self.size(node)), (b, constant(NO_BOUND))):
            if not self._is_normal(operand):
                lost = plus(lost, where(self.size(operand) < tiny, size, ZERO))
        return lost

    def _is_normal(self, node: Expression) -> bool:
        """Return whether a node is known to be no subnormal number, like 1 + e^x or a value clamped from below."""
        if node.is_constant or (node.op == "symbol" and node.value in self.scalars):
            return True
        if node.op == "+":
            return all(self.facts.sign(part) > 0 for part in node.args) and any(map(self._is_normal, node.args))
        return node.op == "max" and any(map(self._is_normal, node.args))

    def _same(self, node: Expression, a: Expression) -> Loss:
        """Return the loss of an exact operation with one operand."""
        return self.loss(a)

    def _rounding(self, node: Expression, a: Expression) -> Loss:
        """Return the loss of a rounding to a narrow type between steps."""
        lost, narrow = self.loss(a), NARROW[node.op]
        more = constant(1 + narrow.unit)
        return Loss(
            (lost.relative + narrow.unit) * SECOND_ORDER,
            times(more, lost.absolute),
            plus(times(more, lost.underflow), constant(narrow.quantum)),
            times(more, lost.scaled),
        )

    # ---- functions ----

    def _function(self, node: Expression, a: Expression, slope: Expression) -> Loss:
        """Return the loss of a function with a slope of at most ``slope`` near a."""
        lost = self.loss(a)
        return Loss(
            self.accuracy(node.op) * SECOND_ORDER,
            times(slope, times(constant(SECOND_ORDER), self.error(a))),
            plus(times(slope, lost.underflow), self.quantum(node)),
        )

    def _exp(self, node: Expression, a: Expression) -> Loss:
        error, lost = self.error(a), self.loss(a)
        scaled = ZERO if error is ZERO else times(constant(SECOND_ORDER), expm1(error))
        below = lost.underflow
        if below.is_constant and constant_value(below) <= self.arithmetic.unit * 2.0**-200:
            below = ZERO  # it changes the result by far less than a rounding
        underflow = plus(times(constant(2), times(node, below)), self.quantum(node))
        relative = self.accuracy("exp") * SECOND_ORDER
        if self.arithmetic.digits > FLOAT64.digits or (self.of_device and is_clamped(a)):  # e^0 is 1 everywhere
            return Loss(0.0, ZERO, underflow, plus(scaled, where(equal(a, ZERO), ZERO, constant(relative))))
        return Loss(relative, ZERO, underflow, scaled)

    def _log(self, node: Expression, a: Expression) -> Loss:
        lost, size = self.loss(a), self.size(a)
        error = plus(plus(constant(lost.relative), lost.scaled), over(lost.absolute, size))  # the relative error of a
        underflow = plus(over(lost.underflow, size), self.quantum(node))
        return Loss(self.accuracy("log") * SECOND_ORDER, times(constant(SECOND_ORDER), error), underflow)

    def _log1p(self, node: Expression, a: Expression) -> Loss:
        return self._function(node, a, over(ONE, self.size(ONE + a)))

    def _expm1(self, node: Expression, a: Expression) -> Loss:
        error, lost = self.error(a), self.loss(a)
        slope = node + 1
        absolute = ZERO if error is ZERO else times(slope, times(constant(SECOND_ORDER), expm1(error)))
        underflow = plus(times(constant(2), times(slope, lost.underflow)), self.quantum(node))
        return Loss(self.accuracy("expm1") * SECOND_ORDER, absolute, underflow)

    def _tanh(self, node: Expression, a: Expression) -> Loss:
        return self._function(node, a, minimum(ONE, times(constant(4), exp(constant(-2) * self.size(a)))))

    def _erf(self, node: Expression, a: Expression) -> Loss:
        return self._function(node, a, times(constant(1.13), exp(-(a * a))))  # 2 / sqrt(pi)

    def _erfc(self, node: Expression, a: Expression) -> Loss:
        """|erfc'(a)| < (2 |a| + sqrt 2) erfc(a); for a device and a < 0 the slope of erf."""
        slope = times(node, plus(times(constant(2), self.size(a)), constant(1.4143)))
        if self.of_device:
            slope = where(a < ZERO, times(constant(1.13), exp(-(a * a))), slope)
        return self._function(node, a, slope)

    def _sqrt(self, node: Expression, a: Expression) -> Loss:
        """An operand that underflows may be lost completely: then the slope is at most 1 / sqrt(a)."""
        slope = over(constant(0.75), node)
        if self.of_device and self.loss(a).absolute is not ZERO:
            slope = over(ONE, where(self.loss(a).absolute < a, node, ZERO) if self._floor(a) is None else node)
        result = self._function(node, a, slope)
        below = plus(over(self.loss(a).underflow, node), self.quantum(node))
        return Loss(result.relative, result.absolute, below, result.scaled)

    # ---- choices ----

    def _sign(self, node: Expression, a: Expression) -> Loss:
        unsigned = self.unsigned(a)
        return EXACT if unsigned is None else Loss(0.0, where(unsigned, constant(2), ZERO), ZERO)

    def unsigned(self, a: Expression) -> Expression | None:
        """Return the condition under which rounding may decide a sign; None if it never does."""
        if self.loss(a).is_zero:
            return None
        return self.size(a) <= plus(self.error(a), self.loss(a).underflow)

    def _extreme(self, node: Expression, a: Expression, b: Expression) -> Loss:
        """Return the loss of the chosen side if the two are further apart than their errors, else the worst loss."""
        sides = [self.loss(a), self.loss(b)]
        if not self.of_device or all(side.absolute is ZERO is side.scaled for side in sides):
            return worst(sides)  # a few ULP: accurate enough
        sides = evened(*sides)
        reach = self._reach(a, b)
        lead = b - a if node.op == "min" else a - b
        absolute, underflow, scaled = (
            picked(reach < lead, one, picked(reach < -lead, other, larger(one, other)))
            for one, other in ((getattr(side, part) for side in sides) for part in ("absolute", "underflow", "scaled"))
        )
        return Loss(sides[0].relative, absolute, underflow, scaled)

    def _where(self, node: Expression, condition: Expression, a: Expression, b: Expression) -> Loss:
        one, other = self.loss(a), self.loss(b)
        if self.arithmetic.quantum:  # a device; for the golden's own evaluation the larger number is accurate enough
            one, other = evened(one, other)
        doubt = self.doubt(condition)
        chosen = Loss(
            max(one.relative, other.relative),
            picked(condition, one.absolute, other.absolute),
            picked(condition, one.underflow, other.underflow),
            picked(condition, one.scaled, other.scaled),
        )
        if doubt is None:
            return chosen
        both = plus(plus(self.error(a), self.error(b)), plus(one.underflow, other.underflow))
        apart = plus(abs(a - b), both)
        absolute = plus(chosen.absolute, where(doubt, apart, ZERO))
        return Loss(chosen.relative, absolute, chosen.underflow, chosen.scaled)

    def doubt(self, condition: Expression) -> Expression | None:
        """Return where rounding may decide a condition; None if it never does."""
        if condition.op in ("and", "or", "not"):
            parts = [d for d in map(self.doubt, condition.args) if d is not None]
            return None if not parts else parts[0] if len(parts) == 1 else parts[0] | parts[1]
        a, b = condition.args
        if a is b or (self.loss(a).is_zero and self.loss(b).is_zero) or are_indices(condition):
            return None
        reach = self._reach(a, b)
        decided = (reach < abs(a - b)) | equal(reach, ZERO)  # two zeros without an error are equal
        return ~decided  # NaN, from two sides that overflow, decides nothing

    def _reach(self, a: Expression, b: Expression) -> Expression:
        """Return how far rounding can move two numbers towards each other."""
        reach = plus(self.error(a), self.error(b))
        return plus(reach, plus(self.loss(a).underflow, self.loss(b).underflow))


_NAMES = {
    "+": "sum", "-": "sum", "*": "product", "/": "quotient", "neg": "same", "abs": "same", "min": "extreme",
    "max": "extreme", "where": "where", "sign": "sign", "sqrt": "sqrt", "exp": "exp", "log": "log", "log1p": "log1p",
    "expm1": "expm1", "tanh": "tanh", "erf": "erf", "erfc": "erfc", **dict.fromkeys(ROUNDINGS, "rounding"),
}  # fmt: skip
