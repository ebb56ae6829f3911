"""Every single change of a formula's graph.

Each operation and comparison is replaced by each other one of its kind, and each function by similar functions. Each
operand is dropped, negated or exchanged for another one. Each constant is changed. Each clamp, absolute value and
branch is removed. A mutant has one change. A change is skipped if it gives the same graph, or one that differs only at
a point at which two branches agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from ...numerics.exact.enclosures import constant_value
from ...numerics.exact.rationals import Undefined
from ...numerics.expressions import (
    ARITHMETIC,
    COMPARISONS,
    ZERO,
    Expression,
    constant,
    exp,
    expm1,
    log,
    log1p,
    operation,
    ratio,
    symbol,
    tanh,
    text,
)
from ...numerics.traversal import names_of, substitute, walk

NEIGHBOURS = {"max": ("min",), "min": ("max",), "tanh": ("erf",), "erf": ("tanh",), "sign": ("abs",), "sqrt": ("abs",)}
SIMILAR: dict[str, Callable[[Expression], tuple[Expression, ...]]] = {  # with exp2 and log2
    "exp": lambda arg: (exp(arg * log(constant(2))), expm1(arg)),
    "expm1": lambda arg: (exp(arg),),
    "log": lambda arg: (log1p(arg), log(arg) / log(constant(2))),
    "log1p": lambda arg: (log(arg),),
    "tanh": lambda arg: (1 / (1 + exp(-arg)),),
    "erf": lambda arg: (tanh(arg),),
}
EPSILONS = tuple(Fraction(v) for v in (1e-7, 1e-8, 1e-15, 2.0**-24))  # clamps of other implementations


class Change(NamedTuple):
    """A changed graph. ``node``: the changed node."""

    name: str
    graph: Expression
    node: Expression


def changes(root: Expression) -> Iterator[Change]:
    """Yield every single change of a graph; operands come before the nodes that use them."""
    symbols = names_of(root)
    result: dict[int, str] = {id(root): ""}
    names: set[str] = set()
    for node in walk(root):
        for name, new in _alternatives(node, symbols, node is root):
            graph = substitute(root, {node: new})
            if id(graph) in result or _meets(node, new, root, graph) or not _is_defined(graph):
                continue
            result[id(graph)] = name
            while name in names:  # the same words at another place
                name += " (again)"
            names.add(name)
            yield Change(name, graph, node)


def _alternatives(node: Expression, symbols: tuple[str, ...], is_root: bool) -> Iterator[tuple[str, Expression]]:
    own = text(node)
    if is_root and node.op in ("symbol", "constant"):
        yield from ((f"{own} -> {text(new)}", new) for new in _leaves(node, symbols))
    for new in _operations(node):
        yield f"{own} -> {text(new)}", new
    for k, arg in enumerate(node.args):
        for leaf in _leaves(arg, symbols):
            args = (*node.args[:k], leaf, *node.args[k + 1 :])
            if len(set(map(id, args))) == 1 and node.op == "-":
                continue  # x - x: the formula would vanish
            yield f"{text(arg)} -> {text(leaf)} in {own}", operation(node.op, *args)
    if is_root:
        yield f"{own} -> (-{own})", -node


def _operations(node: Expression) -> Iterator[Expression]:
    """Yield other operations on the same operands, or parts of the operation."""
    op, args = node.op, node.args
    if op in ARITHMETIC:
        left, right = args
        by_one = right.op == "constant" and right.value in (1, -1)  # * and / then give the same result
        for other in ARITHMETIC:
            if other != op and not (by_one and {op, other} == {"*", "/"}):
                yield operation(other, left, right)
        yield left
        yield right
        if op in ("-", "/"):
            yield operation(op, right, left)
        if op in ("+", "-"):
            yield operation(op, -left, right)
    elif op in COMPARISONS:
        left, right = args
        for other in ("<", "<=", "==", "!="):
            if other != op:
                yield operation(other, left, right)
        for other in ("<", "<="):
            yield operation(other, right, left)
    elif op in ("and", "or"):
        yield operation("or" if op == "and" else "and", *args)
        yield from args
    elif op == "not":
        yield from args
    elif op == "where":
        test, yes, no = args
        yield operation("where", test, no, yes)
        yield yes
        yield no
    elif args:
        yield from args
        yield from _functions(node)


def _functions(node: Expression) -> Iterator[Expression]:
    op, arg = node.op, node.args[0]
    for other in NEIGHBOURS.get(op, ()):
        yield operation(other, *(node.args if other in ("min", "max") else node.args[:1]))
    yield from SIMILAR[op](arg) if op in SIMILAR else ()
    if op not in ("neg", "abs", "min", "max"):
        yield operation(op, -arg)
        yield -node
    if op == "abs":
        yield -arg


def _leaves(node: Expression, symbols: tuple[str, ...]) -> Iterator[Expression]:
    """Yield the expressions for which an operand (symbol or constant) may be mistaken."""
    if node.op == "symbol":
        yield from (symbol(name) for name in symbols if name != node.value)
    elif isinstance(node.value, Fraction):
        for other in _numbers(node.value):
            yield constant(other)
    elif node.op == "constant":  # pi
        yield constant(Fraction(3))
        yield ratio(22, 7)


def _numbers(value: Fraction) -> Iterator[Fraction]:
    if value == 0:
        yield from (Fraction(-1), Fraction(1))
    elif value == 1:
        yield from (Fraction(0), Fraction(2), Fraction(-1), 1 + Fraction(1, 2**10))
    else:
        yield from (Fraction(0), value * 10, value / 10, value * 2, -value, value * (1 + Fraction(1, 2**12)))
        yield from EPSILONS if abs(value) < Fraction(1, 10**5) else (value - 1, value + 1)


def _is_defined(graph: Expression) -> bool:
    """Return whether all constants are real numbers; the root of -2 is not."""
    try:
        return all(_is_number(node) for node in walk(graph) if node.is_constant and not node.is_condition)
    except Undefined:
        return False


@lru_cache(maxsize=4096)
def _is_number(node: Expression) -> bool:
    return math.isfinite(constant_value(node))


# ---- branches that meet ----------------------------------------------------------------------------------------------


def _meets(old: Expression, new: Expression, root: Expression, graph: Expression) -> bool:
    """Return whether ``<`` became ``<=`` (or the reverse) between an operand and a number at which both branches give
    the same value. Then the change is no mutant."""
    if {old.op, new.op} != {"<", "<="} or old.args != new.args:
        return False
    left, right = old.args
    name, number = (left, right) if left.op == "symbol" else (right, left)
    if name.op != "symbol" or not number.is_constant:
        return False
    return settled(root, name, number) is settled(graph, name, number)


def settled(root: Expression, name: Expression, number: Expression) -> Expression:
    """Return a graph at one value of an operand: constants are computed, and conditions on them decided."""
    made: dict[int, Expression] = {}
    for node in walk(root):
        args = tuple(made[id(a)] for a in node.args)
        new = number if node is name else operation(node.op, *args) if args else node
        if node.op == "where" and args[0].op == "constant":
            new = args[1] if args[0].value else args[2]
        elif args and all(a.op == "constant" for a in args):
            with suppress(Undefined):
                new = constant(_decided(new) if node.is_condition else Fraction(constant_value(new)))
        made[id(node)] = new
    return made[id(root)]


def _decided(condition: Expression) -> Fraction:
    left, *others = (constant_value(a) for a in condition.args)
    right = others[0] if others else 0.0
    held = {"<": left < right, "<=": left <= right, "==": left == right, "!=": left != right,
            "and": bool(left and right), "or": bool(left or right), "not": not left}[condition.op]  # fmt: skip
    return Fraction(int(held))


# ---- factors ---------------------------------------------------------------------------------------------------------


def factors(root: Expression) -> tuple[Expression, ...]:
    """Return the factors with which a graph's value becomes zero: factors of a product, common factors of a sum."""
    if root.op == "*":
        return tuple(dict.fromkeys((*factors(root.args[0]), *factors(root.args[1]))))
    if root.op in ("/", "neg"):
        return factors(root.args[0])
    if root.op in ("+", "-") and ZERO not in root.args:
        common = [f for f in _terms(root.args[0]) if f in _terms(root.args[1])]
        return tuple(common) or (root,)
    return () if root.is_constant else (root,)


def _terms(node: Expression) -> tuple[Expression, ...]:
    return factors(node) if node.op in ("*", "/", "neg") else (node,)


def is_mere_factor(root: Expression, name: str) -> bool:
    """Return whether a formula is an operand times an expression without that operand."""
    own = symbol(name)
    if own not in factors(root):
        return False
    return sum(arg is own for node in walk(root) for arg in node.args) == 1
