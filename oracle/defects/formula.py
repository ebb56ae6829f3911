"""Mutants of the formulas, made by rewriting their source.

Every operator and comparison is replaced by each of its kind, every operand dropped, negated or exchanged for another
one, every constant changed, every clamp, absolute value and branch removed: one change a mutant.
"""

from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from . import kernels
from .base import Defect
from .device import Device
from .kernels import FORMULAS, SLUGS, kernel_of

ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="
}  # fmt: skip
REAL = {"g", "x", "y", "w", "total", "count", "p", "s"}  # operands that may stand for one another
NEIGHBOURS = {"maximum": "minimum", "exp": "exp2", "abs": "negative"}
Change = tuple[ast.AST, ast.AST]


def mutants(op: str) -> Iterator[Defect]:
    """Yield the operator's formula with every single change."""
    for name, change, formula in _mutated(op):
        id = f"formula/{SLUGS[op]}/{name}"
        yield Defect(
            id, op, "FORM", change, Device(name, kernel_of(op, formula)),
            "values that enter the changed term",
        )  # fmt: skip


@cache
def _mutated(op: str) -> tuple[tuple[str, str, Callable[..., Any]], ...]:
    function = FORMULAS[op]
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    found: dict[str, tuple[str, str, Callable[..., Any]]] = {}
    original = ast.unparse(tree)
    for statement, old, new in _changes(tree):
        changed = _replace(tree, old, new)
        if ast.unparse(changed) == original:
            continue
        label = _target(statement)
        name = f"{label}{ast.unparse(old)} -> {ast.unparse(new)}"
        while name in found:  # the same words at another place of the statement
            name += " (again)"
        found[name] = (
            name,
            f"`{ast.unparse(old)}` becomes `{ast.unparse(new)}`",
            _compiled(changed, function.__name__),
        )
    return tuple(found.values())


def _target(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Assign):
        return f"{ast.unparse(statement.targets[0])}: "
    return ""


def _replace(tree: ast.Module, old: ast.AST, new: ast.AST) -> ast.Module:
    """Return a copy of the tree with one node replaced."""

    class Swap(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return new if node is old else self.generic_visit(node)

    # copy.copy of every node on the way keeps the identity of ``old`` while the original tree stays as it is
    memo = {id(old): old}
    duplicate = copy.deepcopy(tree, memo)
    changed: ast.Module = ast.fix_missing_locations(Swap().visit(duplicate))
    return changed


def _compiled(tree: ast.Module, name: str) -> Callable[..., Any]:
    scope = dict(vars(kernels))
    exec(compile(tree, "<mutant>", "exec"), scope)
    return scope[name]  # type: ignore[no-any-return]


def _changes(tree: ast.Module) -> Iterator[tuple[ast.stmt, ast.AST, ast.AST]]:
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    parameters = [a.arg for a in function.args.args]
    locals_before = list(parameters)
    for statement in function.body:
        value = getattr(statement, "value", None)
        if value is None:
            continue
        for node in ast.walk(value):
            for new in _alternatives(node, locals_before):
                yield statement, node, new
        if isinstance(value, (ast.BinOp, ast.IfExp)):
            yield statement, value, ast.UnaryOp(ast.USub(), copy.deepcopy(value))
        if isinstance(statement, ast.Assign):
            locals_before.append(ast.unparse(statement.targets[0]))


def _alternatives(node: ast.AST, known: list[str]) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp):
        left, right = node.left, node.right
        for kind in ARITHMETIC:
            if not isinstance(node.op, kind):
                yield ast.BinOp(left, kind(), right)
        yield left
        yield right
        if isinstance(node.op, (ast.Sub, ast.Div)):
            yield ast.BinOp(right, node.op, left)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            yield ast.BinOp(ast.UnaryOp(ast.USub(), left), node.op, right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Compare):
        for comparison in COMPARISONS:
            if not isinstance(node.ops[0], comparison):
                yield ast.Compare(node.left, [comparison()], node.comparators)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body)
        yield node.body
        yield node.orelse
    elif isinstance(node, ast.Constant):
        yield from _constants(node.value)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.Name) and node.id in REAL & set(known):
        for other in known:
            if other in REAL and other != node.id:
                yield ast.Name(other, ast.Load())


def _constants(value: Any) -> Iterator[ast.AST]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    if isinstance(value, int):
        others: tuple[float, ...] = (value - 1, value + 1)
    elif value == 1.0:
        others = (0.0, 2.0, -1.0, 1.0 + 2.0**-10)
    else:
        others = (0.0, value * 10, value / 10, value * 2, value * (1 + 2.0**-12), 1e-7, 1e-8, 1e-15, 2.0**-24)
    for other in others:
        yield ast.Constant(other)


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    name = ast.unparse(node.func)
    short = name.removeprefix("np.")
    if short in NEIGHBOURS:
        yield ast.Call(ast.parse(f"np.{NEIGHBOURS[short]}", mode="eval").body, node.args, node.keywords)
    if short in ("maximum", "abs", "exp"):
        yield from node.args
    if short == "where":
        test, yes, no = node.args
        yield ast.Call(node.func, [test, no, yes], [])
        yield yes
        yield no
    if short == "row_sum":
        for other in ("(dim - 1) % max(p.ndim, 1)", "0", "-1", "p.ndim - 1 - dim % max(p.ndim, 1)"):
            axis = ast.parse(other, mode="eval").body
            yield ast.Call(node.func, [node.args[0], axis], [])
        yield ast.parse("p.sum(dtype=p.dtype)", mode="eval").body
        yield ast.parse("row_sum(p, dim) / F(p.shape[dim] if p.ndim else 1)", mode="eval").body
        yield ast.parse("p.max(axis=dim if p.ndim else None, keepdims=True)", mode="eval").body
        yield ast.parse("np.abs(row_sum(p, dim))", mode="eval").body
        yield ast.parse("row_sum(np.abs(p), dim)", mode="eval").body
        yield ast.parse("row_sum(p, dim) - p", mode="eval").body
        yield ast.parse("row_sum(p / row_sum(y, dim), dim)", mode="eval").body
    if short == "gather":
        for other in ("c + 1", "c - 1", "rows"):
            yield ast.Call(node.func, [node.args[0], ast.parse(other, mode="eval").body], [])
        yield ast.parse("F(1.0)", mode="eval").body
    if short == "scatter":
        for position, others in ((1, ("rows + 1", "rows[::-1]")), (2, ("c + 1", "c - 1", "c[::-1]"))):
            for other in others:
                args = list(node.args)
                args[position] = ast.parse(other, mode="eval").body
                yield ast.Call(node.func, args, [])
