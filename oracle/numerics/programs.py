"""Graphs of formulas evaluated with NumPy: in float64 block by block, and in a device's own arithmetic.

A :class:`Program` is a graph as a list of steps. Its temporaries come from the pool of the block's shape and are
returned as soon as no step needs them, so that a block stays in the cache. ``simulate`` runs a graph like a device that
computes in float32 or narrower: every operation is one NumPy operation in that type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..model.call import Array
from ..model.dtypes import DTYPES, dtype_of
from .exact.enclosures import constant_value, round_constant
from .expressions import IRRATIONAL, ROUNDINGS, Expression, symbol
from .floats import functions
from .floats.blocks import aligned, pool_for
from .floats.codes import castable
from .traversal import names_of, substitute, walk

Number = float | np.floating[Any]
Values = Array | Number

UFUNCS: dict[str, Any] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "neg": np.negative, "abs": np.abs,
    "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "log1p": np.log1p, "expm1": np.expm1, "tanh": np.tanh,
    "erf": functions.erf, "erfc": functions.erfc, "sign": np.sign, "min": np.minimum, "max": np.maximum,
    "<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal,
    "and": np.logical_and, "or": np.logical_or, "not": np.logical_not,
    **dict.fromkeys(ROUNDINGS, np.positive),  # of real numbers; ``simulate`` rounds
}  # fmt: skip
# The functions of verdicts have the same bits on every machine. Only goldens are proved; they use NumPy's, which are
# faster.
SAME_BITS = {**UFUNCS, **{name: getattr(functions, name) for name in ("exp", "log", "log1p", "expm1", "tanh")}}


class Step(NamedTuple):
    """One operation: the slots of its operands and of its result, and the operands that no later step needs."""

    op: str
    target: int
    args: tuple[int, ...]
    dead: tuple[int, ...]
    is_condition: bool


NUMBER, THEIRS, LOADED = range(3)  # an operand: a number, the caller's array, an array widened into a buffer
MANY = 1 << 11  # elements from which a choice is made by bits, and a limit by clip
ALONE, NEW = -1, -2  # a result: a value of its own (a number, a mask), an array in a free buffer


class Planned(NamedTuple):
    """A step for operands of known kinds. ``reuse``: the slot of the buffer for the result, else ALONE or NEW;
    ``idle``: the slots with buffers that are free afterwards."""

    op: str
    function: Any
    target: int
    places: tuple[int, ...]
    reuse: int
    idle: tuple[int, ...]


def _listed(roots: tuple[Expression, ...]) -> tuple[list[tuple[int, str]], list[Step]]:
    """Return the slots of the symbols of some graphs, and the steps. A node's slot is its place in :func:`walk`."""
    nodes = walk(*roots)
    slots = {node: k for k, node in enumerate(nodes)}
    last = {arg: node for node in nodes if not node.is_constant for arg in node.args}
    symbols, steps = [], []
    for k, node in enumerate(nodes):
        if node.op == "symbol":
            symbols.append((k, str(node.value)))
        elif not node.is_constant:
            dead = {slots[arg] for arg in node.args if last[arg] is node and arg not in roots}
            steps.append(Step(node.op, k, tuple(slots[arg] for arg in node.args), tuple(dead), node.is_condition))
    return symbols, steps


class Program:
    """Some graphs over the same operands, ready for blocks of float64. ``fast``: with NumPy's functions; their last bit
    depends on the machine."""

    def __init__(self, *roots: Expression, fast: bool = False) -> None:
        self.functions = UFUNCS if fast else SAME_BITS
        nodes = walk(*roots)
        self.symbols, self.steps = _listed(roots)
        self.plans: dict[tuple[int, ...], list[Planned]] = {}
        self.start: list[Any] = [constant_value(node) if node.is_constant else None for node in nodes]
        self.size, self.roots = len(nodes), tuple(nodes.index(root) for root in roots)

    def __call__(self, operands: Mapping[str, Values], shape: tuple[int, ...]) -> list[Values]:
        """Return the roots' values. ``operands``: arrays of a shape, of any float type, or numbers.

        Arrays among the results belong to the caller until :func:`release` returns them.
        """
        free = pool_for(shape)
        values = list(self.start)
        kinds = []
        for slot, name in self.symbols:
            given = operands[name]
            if not isinstance(given, np.ndarray):
                kinds.append(NUMBER)
                values[slot] = np.float64(given)
            elif given.dtype == np.float64:
                kinds.append(THEIRS)
                values[slot] = given
            else:
                kinds.append(LOADED)
                values[slot] = buffer = free.pop() if free else aligned(shape)
                np.copyto(buffer, castable(given))
        plan = self.plans.get(tuple(kinds)) or self._planned(tuple(kinds))
        for op, function, target, places, reuse, idle in plan:
            args = [values[a] for a in places]
            if reuse == ALONE:
                values[target] = function(*args)
            else:
                out = values[reuse] if reuse != NEW else free.pop() if free else aligned(shape)
                if op == "where":
                    _choose(args[0], args[1], args[2], out)
                else:
                    function(*args, out=out)
                values[target] = out
            for a in idle:
                free.append(values[a])
        return [values[r] for r in self.roots]

    def _planned(self, kinds: tuple[int, ...]) -> list[Planned]:
        """Plan the steps for operands of some kinds: which results are arrays, and which buffers take them."""
        owned, single = [False] * self.size, [True] * self.size
        for (slot, _), kind in zip(self.symbols, kinds, strict=True):
            owned[slot], single[slot] = kind == LOADED, kind == NUMBER
        plan = []
        for op, target, places, dead, is_condition in self.steps:
            single[target] = all(single[a] for a in places)
            function, reuse = self.functions.get(op, _chosen), ALONE
            if not single[target] and not is_condition:
                function, places = self._limited(op, places) or (function, places)
                reuse = next((a for a in dead if owned[a]), NEW)
                owned[target] = True
                if reuse != NEW:
                    owned[reuse] = False
            idle = tuple(a for a in dead if owned[a])
            for a in idle:
                owned[a] = False
            plan.append(Planned(op, function, target, places, reuse, idle))
        left = tuple(slot for slot, mine in enumerate(owned) if mine and slot not in self.roots)
        if left and plan:
            plan[-1] = plan[-1]._replace(idle=(*plan[-1].idle, *left))
        self.plans[kinds] = plan
        return plan

    def _limited(self, op: str, places: tuple[int, ...]) -> tuple[Any, tuple[int, ...]] | None:
        """Return the function of a ``max`` or ``min`` with a constant, and the place of its other operand."""
        for place, other in (places, places[::-1]) if op in ("max", "min") else ():
            if number := self.start[other]:  # 0 is excluded: the processor decides which of two zeros is larger
                return partial(limited, op, number), (place,)
        return None


def limited(op: str, number: Any, values: Array, out: Array | None = None) -> Array:
    """Return ``max`` or ``min`` of an array and a number other than 0. NumPy's own functions take two to three times as
    long as ``clip`` on long arrays: they use no vectors if an operand is a number. NaN stays NaN in both."""
    if values.size < MANY:
        return np.asarray(UFUNCS[op](values, number, out=out))
    low, high = (number, np.inf) if op == "max" else (-np.inf, number)
    return np.clip(values, low, high, out=out)


def _choose(condition: Any, then: Any, otherwise: Any, out: Array) -> None:
    """Store the choice of ``where`` among arrays or numbers; ``out`` may be one of them."""
    if out.size >= MANY and np.shape(condition) == out.shape:
        _blend(condition, then, otherwise, out)
    elif out is then:
        np.copyto(out, otherwise, where=~np.asarray(condition))
    else:
        if out is not otherwise:
            np.copyto(out, otherwise)
        np.copyto(out, then, where=condition)


def _blend(condition: Any, then: Any, otherwise: Any, out: Array) -> None:
    """Store the choice by bits, otherwise ^ ((then ^ otherwise) & mask). A masked copy branches on every element. If a
    condition follows no pattern, the processor mispredicts half of the branches."""
    bits = np.dtype(f"i{out.itemsize}")
    one, other = (np.asarray(each, out.dtype).view(bits) for each in (then, otherwise))
    mask = np.asarray(condition).astype(bits)
    np.negative(mask, out=mask)
    mask &= one ^ other
    np.bitwise_xor(other, mask, out=out.view(bits))


def _chosen(condition: Any, then: Any, otherwise: Any) -> Any:
    """Return the choice of ``where`` among numbers."""
    return then if condition else otherwise


def loaded(operands: Mapping[str, Values], shape: tuple[int, ...]) -> dict[str, Values]:
    """Return operands widened to float64, in buffers that :func:`release` gives back."""
    result: dict[str, Values] = {}
    for name, given in operands.items():
        if isinstance(given, np.ndarray):
            buffer = spare(shape)
            np.copyto(buffer, castable(given))
            result[name] = buffer
        else:
            result[name] = given
    return result


def spare(shape: tuple[int, ...]) -> Array:
    """Return a buffer that :func:`release` gives back."""
    free = pool_for(shape)
    return free.pop() if free else aligned(shape)


def release(*results: Values) -> None:
    """Return result arrays to their pools; an array named twice (a formula that is one of its operands) only once."""
    for values in {id(values): values for values in results}.values():
        if isinstance(values, np.ndarray):
            pool_for(values.shape).append(values)


program = lru_cache(maxsize=512)(Program)  # built once for the same graphs


# ---- a device's arithmetic -------------------------------------------------------------------------------------------


def simulate(
    root: Expression,
    operands: Mapping[str, Values],
    compute: Any,
    *,
    largest: float = np.inf,
    flushing: frozenset[str] = frozenset(),
    same_bits: bool = False,
) -> Array:
    """Run a graph with every operation rounded to a type, as a device does.

    ``operands``: arrays of the type, or numbers, which are rounded to it. ``largest``: a step's result of at least this
    size becomes infinite (a device with a different last digit may overflow a little earlier). ``flushing``: operations
    that return 0 instead of subnormal float32 results; a division then reads subnormal operands as 0. Integer operands
    stay integers. ``same_bits``: the same on every machine; NumPy's functions are faster.
    """
    kind, known = np.dtype(compute), SAME_BITS if same_bits else UFUNCS
    flushing = flushing if kind == np.float32 else frozenset()
    constants, symbols, steps = _device_steps(root, kind)
    values = list(constants)
    with np.errstate(all="ignore"):
        for slot, name in symbols:
            given = operands[name]
            values[slot] = given if isinstance(given, np.ndarray) else np.asarray(given).astype(kind)[()]
        for op, target, places, dead, is_condition in steps:
            args = [values[a] for a in places]
            result = _simulated(known, op, args, kind, op in flushing)
            if largest < np.inf and not is_condition:
                size = np.abs(result)
                beyond = size >= largest
                for a in args:  # a step that returns one of its operands rounds nothing
                    beyond = beyond & (size != np.abs(a))
                result = np.where(beyond, np.copysign(kind.type(np.inf), result), result)
            for a in dead:
                values[a] = None  # the next step can use its memory
            values[target] = result
    return np.asarray(values[-1])


@lru_cache(maxsize=4096)
def _device_steps(root: Expression, kind: np.dtype[Any]) -> tuple[list[Any], list[tuple[int, str]], list[Step]]:
    """Return a graph as a device of a type runs it: constants by slot, the slots of symbols, and the steps."""
    name = dtype_of(kind).name
    constants = [kind.type(round_constant(node, name)) if node.is_constant else None for node in walk(root)]
    return constants, *_listed((root,))


def flushed(values: Any) -> Any:
    """Return float32 values with subnormal ones replaced by zeros of the same sign."""
    return np.where(np.abs(values) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), values), values)


def _where(condition: Any, then: Any, otherwise: Any, kind: np.dtype[Any]) -> Any:
    """Return the choice of ``where``; for large arrays of the type by bits."""
    if np.size(condition) < MANY or not (then.dtype == otherwise.dtype == kind):
        return np.where(condition, then, otherwise)
    result = np.empty(np.shape(condition), kind)
    _blend(condition, then, otherwise, result)
    return result


def _are_limited(values: Any, number: Any, kind: np.dtype[Any]) -> bool:
    return np.ndim(values) > 0 and values.dtype == kind and np.ndim(number) == 0 and bool(number)


def _simulated(known: Mapping[str, Any], op: str, args: list[Any], kind: np.dtype[Any], flushes: bool = False) -> Any:
    if flushes:
        return flushed(_simulated(known, op, [flushed(a) for a in args] if op == "/" else args, kind))
    if op == "where":
        return _where(args[0], args[1], args[2], kind)
    if op in ROUNDINGS:
        return np.asarray(args[0]).astype(DTYPES[op].numpy).astype(kind)
    if op in ("max", "min") and kind == np.float32 and _are_limited(args[0], args[1], kind):
        return limited(op, args[1], args[0])
    return known[op](*args)


# A graph's operands by symbol: arrays of the output's shape, or numbers; selections and conversions of them.

Operands = Mapping[str, Values]


def shape_of(operands: Operands) -> tuple[int, ...]:
    """Return the common shape of the operands that are arrays."""
    return next(v.shape for v in operands.values() if isinstance(v, np.ndarray))


def map_arrays(operands: Operands, change: Callable[[Array], Array]) -> Operands:
    return {n: change(o) if isinstance(o, np.ndarray) else o for n, o in operands.items()}


def index_arrays(operands: Operands, index: Any) -> Operands:
    return map_arrays(operands, lambda array: array[index])


FIRST = (Ellipsis, slice(1))  # the first element of each row, the axis kept


def cast(operands: Operands, dtype: Any) -> Operands:
    """Round the operands that are arrays to a dtype."""
    wide = np.dtype(dtype).itemsize > 2
    return map_arrays(operands, lambda array: (castable(array) if wide else array).astype(dtype))


# Parts of graphs that depend on one 16-bit operand alone, read from tables of all its 65,536 values.
#
# A table contains the results of the part's own program for every value. Every step of a program is an operation on one
# element, and its bits do not depend on the element's position. So a look-up gives the same bits as the computation,
# and proofs for one are valid for the other. Tables are used in calls with more elements than a table, and only for
# parts with a function such as e^x, which costs many times a look-up.

VALUES = 1 << 16  # of a 16-bit type
KEPT = 32  # tables of a process, half a MiB each


class Part(NamedTuple):
    """A part of graphs that depends on one operand alone; ``name``: the symbol that replaces it."""

    name: str
    operand: str
    root: Expression


def narrow_of(given: Mapping[str, Values], elements: int) -> dict[str, Array]:
    """Return the operands that are worth a table in a call of ``elements`` elements."""
    if elements <= VALUES:
        return {}
    return {name: v for name, v in given.items() if isinstance(v, np.ndarray) and v.itemsize == 2}


def evaluate(
    roots: tuple[Expression, ...],
    given: Mapping[str, Values],
    narrow: Mapping[str, Any],
    shape: tuple[int, ...],
    *,
    fast: bool = False,
) -> list[Values]:
    """Return the result of ``program(*roots, fast=fast)(given, shape)``. ``narrow``: 16-bit operands that are looked
    up, before they were widened."""
    left, parts = split(roots, frozenset(narrow)) if narrow else (roots, ())
    if not parts:
        return program(*roots, fast=fast)(given, shape)
    places = {name: narrow[name].view(np.uint16).astype(np.intp) for name in {part.operand for part in parts}}
    read = {}
    for part in parts:
        read[part.name] = buffer = spare(shape)
        known = table(part.root, narrow[part.operand].dtype, fast)
        known.take(places[part.operand], out=buffer, mode="clip")  # another mode would copy
    result = program(*left, fast=fast)({**given, **read}, shape)
    kept = set(map(id, result))
    release(*(buffer for buffer in read.values() if id(buffer) not in kept))
    return result


@lru_cache(maxsize=1024)
def split(roots: tuple[Expression, ...], names: frozenset[str]) -> tuple[tuple[Expression, ...], tuple[Part, ...]]:
    """Return graphs with symbols instead of all parts that tables contain for operands of some names, and these
    parts."""
    result = dict.fromkeys(part for root in roots for part in _parts(root, names))
    parts = tuple(Part(f"table {k}", names_of(root)[0], root) for k, root in enumerate(result))
    places = {part.root: symbol(part.name) for part in parts}
    return tuple(substitute(root, places) for root in roots), parts


def _parts(root: Expression, names: frozenset[str]) -> Iterator[Expression]:
    """Yield the largest parts of a graph that depend on one of the operands alone and contain a function."""
    stack, seen = [root], set()
    while stack:
        node = stack.pop()
        if node in seen or node.is_constant or not any(_is_slow(n) for n in walk(node)):
            continue
        seen.add(node)
        used = names_of(node)
        if len(used) == 1 and used[0] in names and not node.is_condition:
            yield node
        else:
            stack.extend(reversed(node.args))


def _is_slow(node: Expression) -> bool:
    return node.op in IRRATIONAL and node.op != "sqrt" and not node.is_constant


@lru_cache(maxsize=KEPT)
def table(root: Expression, kind: np.dtype[Any], fast: bool) -> Array:
    """Return a graph's value in float64 for every value of its operand, by the operand's bits."""
    (name,) = names_of(root)
    with np.errstate(all="ignore"):
        (result,) = program(root, fast=fast)({name: every_value(kind)}, (VALUES,))
    return np.asarray(result)


def simulated(
    root: Expression, given: Mapping[str, Values], narrow: Mapping[str, Any], compute: Any, flushing: frozenset[str]
) -> Array:
    """Return the result of ``simulate`` for operands cast to ``compute``, with the same bits on every machine."""
    (left,), parts = split((root,), frozenset(narrow)) if narrow else ((root,), ())
    read = {}
    for part in parts:
        known = device_table(part.root, narrow[part.operand].dtype, np.dtype(compute), flushing)
        read[part.name] = known.take(narrow[part.operand].view(np.uint16))
    return simulate(left, {**given, **read}, compute, flushing=flushing, same_bits=True)


@lru_cache(maxsize=KEPT)
def device_table(root: Expression, kind: np.dtype[Any], compute: np.dtype[Any], flushing: frozenset[str]) -> Array:
    """Return a device's results of a graph for every value of its operand. The device computes in ``compute``."""
    (name,) = names_of(root)
    with np.errstate(all="ignore"):
        values = every_value(kind).astype(compute)
    return simulate(root, {name: values}, compute, flushing=flushing, same_bits=True)


def every_value(kind: np.dtype[Any]) -> Array:
    """Return every value of a 16-bit type, in the order of their bits."""
    return np.arange(VALUES, dtype=np.uint16).view(kind)
