"""The parameters of an operator: their meaning here and in other programs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ...model.dtypes import DTYPES
from ...model.errors import OracleError
from .roles import UNREAD, Role, Shape, usual_groups

# The meaning of an attribute's number.
AttributeRole = Literal[
    "axis", "lengths", "groups", "extent", "mask", "reduction", "ignore index", "number", "flag", "choice"
]
CType = Literal["int64", "aclIntArray", "aclBoolArray", "aclScalar", "float", "double", "bool", "char*"]
REDUCTIONS = ("none", "mean", "sum")
NONE, MEAN, SUM = range(3)


@dataclass(frozen=True)
class Parameter:
    """One parameter of GetWorkspaceSize.

    ``name``: the aclnn name. ``symbol``: its name in the formula. ``optional``: it can be a null pointer. ``role``: of
    an input tensor, or of an attribute. ``read``: whether any kernel reads its values. ``dtype``: an input's fixed
    dtype, which does not follow the main operand's. ``c``: an attribute's C type. ``words``: the words behind an
    attribute's numbers, or a choice's words. ``plain``: an attribute's usual value. ``along``: the axes, first and end
    of a slice, whose elements an attribute counts. ``parts``: the formula's names for the equal parts of an input along
    the axis, if it does not read the whole. ``absent``: the value in the formula of an optional input that is a null
    pointer.
    """

    name: str
    kind: Literal["input", "attr", "output"]
    role: Role | AttributeRole | None = None
    symbol: str = ""
    optional: bool = False
    read: bool = True
    c: CType = "int64"
    words: tuple[str, ...] = ()
    plain: Any = None
    dtype: str = ""
    parts: tuple[str, ...] = ()
    absent: int = 1
    along: tuple[int, int | None] = (0, None)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Its names in the formula: its symbol, or the symbols of its parts."""
        return self.parts or ((self.symbol,) if self.symbol else ())

    def enters(self, symbols: Iterable[str]) -> bool:
        """Return whether the parameter, or a part of it, is among some symbols."""
        return any(symbol in symbols for symbol in self.symbols)

    def usual(self, main: Shape) -> Any:
        """Return an attribute's usual value for a shape of the main operand."""
        if self.role == "lengths":
            return main[len(main) - self.plain :]
        if self.role == "extent":
            return math.prod(main[slice(*self.along)])
        return usual_groups(main) if self.role == "groups" else self.plain

    @property
    def is_whole(self) -> bool:
        """Whether the declared type is an integer type or bool."""
        return self.dtype != "" and DTYPES[self.dtype].is_whole

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values that a choice can have: its words, or the numbers behind them."""
        return self.words if self.c == "char*" else tuple(range(len(self.words)))

    @property
    def words_text(self) -> str:
        """The words of a choice, with numbers if it has any: ``none, mean, sum``, or ``0 none, 1 mean, 2 sum``."""
        return ", ".join(self.words if self.c == "char*" else (f"{n} {word}" for n, word in enumerate(self.words)))

    def holds(self, what: str) -> bool:
        """Return whether it is an input whose role holds ``values``, ``classes`` or ``nothing``."""
        return isinstance(self.role, Role) and self.role.holds == what


def tensor(
    name: str,
    symbol: str,
    role: Role,
    *,
    optional: bool = False,
    read: bool = True,
    dtype: str = "",
    parts: tuple[str, ...] = (),
    absent: int = 1,
) -> Parameter:
    """Declare an input tensor. An optional one that is a null pointer has the value ``absent`` in the formula.

    ``parts``: the symbols of its equal parts along the attribute ``axis(name)``, first to last. The formula reads the
    parts instead of the whole tensor.
    """
    return Parameter(
        name, "input", role, symbol, optional, read and role is not UNREAD, dtype=dtype, parts=parts, absent=absent
    )


def output(name: str, role: Role | None = None) -> Parameter:
    """Declare an output. The first has the main operand's shape, or the common shape of operands that broadcast with
    it; a further output has the shape of its role."""
    return Parameter(name, "output", role)


def axis(name: str) -> Parameter:
    """Declare the axis that is reduced, counted from either end."""
    return Parameter(name, "attr", "axis", plain=-1)


def lengths(name: str) -> Parameter:
    """Declare the lengths of the last axes, which are normalised: a tuple, or None for a null pointer. A catalogue can
    give a number of axes instead, usually one. The lengths are then those of the main operand."""
    return Parameter(name, "attr", "lengths", c="aclIntArray", plain=1)


def groups(name: str) -> Parameter:
    """Declare the number of groups that the channels, axis 1 of the main operand, are split into. A formula can reduce
    ``over`` it: over the channels of a group and all axes behind them."""
    return Parameter(name, "attr", "groups", plain="usual")


def extent(name: str, first: int, end: int | None) -> Parameter:
    """Declare the number of elements along the main operand's axes ``first:end``; a call repeats this number."""
    return Parameter(name, "attr", "extent", plain="usual", along=(first, end))


def mask(name: str, outputs: int) -> Parameter:
    """Declare the outputs that a call requests: a tuple with one bool per output, in order, or None for a null pointer.
    An output that is not requested stays unchanged, and can be a null pointer."""
    return Parameter(name, "attr", "mask", c="aclBoolArray", plain=(True,) * outputs)


def reduction(name: str, words: tuple[str, ...] = REDUCTIONS) -> Parameter:
    """Declare the reduction of the loss: 0 none, 1 mean, 2 sum."""
    return Parameter(name, "attr", "reduction", words=words, plain=NONE)


def ignore_index(name: str, plain: int = -100, *, symbol: str = "") -> Parameter:
    """Declare the class whose samples are ignored; in the formula it is an integer."""
    return Parameter(name, "attr", "ignore index", symbol, plain=plain)


def number(name: str, symbol: str, *, c: CType = "aclScalar", plain: float = 1.0, optional: bool = False) -> Parameter:
    """Declare a real number; the formula receives it like the kernel, rounded to float32."""
    return Parameter(name, "attr", "number", symbol, optional, c=c, plain=plain)


def flag(name: str, symbol: str = "", *, plain: bool = False) -> Parameter:
    """Declare a bool; in the formula it is a constant, 1 or 0."""
    return Parameter(name, "attr", "flag", symbol, c="bool", plain=plain)


def choice(name: str, words: tuple[str, ...], symbol: str = "", *, c: CType = "char*") -> Parameter:
    """Declare a choice among some words; in the formula it is a constant, the word's index. With ``c="int64"`` the API
    receives that index, and every other number means the first word."""
    return Parameter(name, "attr", "choice", symbol, c=c, words=words, plain=words[0] if c == "char*" else 0)


# An attribute's value in files and on command lines: a number, a word, yes or no, null.

NUMBERS = {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def attribute_value(parameter: Parameter, value: Any) -> Any:
    """Return the call's value for an attribute value in a file. Raises OracleError.

    An integer can be given as its word (``mean``), a number as ``inf`` or ``nan``; None is a null pointer.
    """
    if value is None and parameter.c in ("aclScalar", "char*"):
        return None
    if parameter.c == "char*":
        if isinstance(value, str):
            return value
        raise OracleError(f"{parameter.name} is {value!r}; it must be a word: {', '.join(parameter.words)}")
    if parameter.c == "bool":
        if isinstance(value, bool) or value in (0, 1):
            return bool(value)
        raise OracleError(f"{parameter.name} is {value!r}; it must be true or false")
    if parameter.c in ("aclIntArray", "aclBoolArray"):
        kind, words = (int, "integers") if parameter.c == "aclIntArray" else (bool, "bools")
        if kind is int and type(value) is int:  # other tools write a list of one element as that element
            value = (value,)
        if value is None or (isinstance(value, (list, tuple)) and all(type(n) is kind for n in value)):
            return None if value is None else tuple(value)
        raise OracleError(f"{parameter.name} is {value!r}; it must be a list of {words}, or null for a null pointer")
    if parameter.c == "int64":
        return _integer(parameter, value)
    if isinstance(value, str) and value.strip().lower() in NUMBERS:
        return NUMBERS[value.strip().lower()]
    if isinstance(value, (bool, int, float)):
        return value
    raise OracleError(f"{parameter.name} is {value!r}; it must be a number, inf, -inf or nan")


def _integer(parameter: Parameter, value: Any) -> int:
    if isinstance(value, str) and value.lower() in parameter.words:
        return parameter.words.index(value.lower())
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole:
        words = f" or one of {', '.join(parameter.words)}" if parameter.words else ""
        raise OracleError(f"{parameter.name} is {value!r}; it must be an integer{words}")
    return int(value)


def attribute_text(parameter: Parameter, text: str) -> Any:
    """Return the call's value for an attribute value on a command line. Raises OracleError."""
    if parameter.c == "char*":
        return text
    try:
        value = json.loads(text.lower() if text.lower() in ("true", "false") else text)
    except ValueError:
        value = text
    return attribute_value(parameter, value)


# The operator elsewhere: its names in ATK's and TTK's files, in PyTorch and in MindSpore, and its forwards.


@dataclass(frozen=True)
class Forward:
    """A forward operator whose results a gradient reads; training passes them on (``run --pair``).

    The gradient's operands are these results, the forward's inputs, and the incoming gradient. An optional operand that
    is none of these is a null pointer.
    """

    #: The forward's aclnn name.
    name: str
    #: By the gradient's operand: the output of the forward that becomes this operand.
    results: Mapping[str, str]
    #: Makes the gradient's attributes that the forward lacks, or names differently, from the forward's attributes.
    attributes: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    #: By the gradient's operand: the input of the forward that becomes this operand, if the names differ.
    inputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KernelName:
    """The kernel behind an operator, as ATK and TTK name it."""

    name: str
    #: The inputs' aclnn names in the kernel's order.
    inputs: tuple[str, ...]
    #: By the kernel's attribute name: the aclnn attribute behind it, and its value if it is omitted.
    attributes: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    #: Further optional inputs of the kernel, which the aclnn function does not have.
    optional: tuple[str, ...] = ()


@dataclass(frozen=True)
class Aten:
    """PyTorch's function for an operator."""

    #: Called with ``torch.ops.aten`` and the call's tensors and attributes by aclnn name. None: torch_npu alone has it.
    call: Callable[[Any, Mapping[str, Any]], Any] | None
    #: The inputs that aten requires in the main operand's shape.
    expanded: tuple[str, ...] = ()
    #: The dtypes of class indices that it takes.
    index_types: tuple[str, ...] = ("int64", "uint8")
    #: The call for torch_npu, if it differs.
    npu: Callable[[Any, Mapping[str, Any]], Any] | None = None
    #: Whether it takes inputs of different float types.
    mixed: bool = False
    #: Whether PyTorch's float32 on the CPU loses more than a right kernel is allowed to, or differs at special values
    #: and limits; cases/expectations/torch.yaml lists the cases.
    departs: bool = False


@dataclass(frozen=True)
class MindSpore:
    """MindSpore's function for an operator.

    Inputs that broadcast are expanded to the output's shape first: a CPU kernel reads past the end of a smaller input.
    """

    #: Called with the module of MindSpore's generated primitives and the call's tensors and attributes by aclnn name.
    #: None: it has no such gradient primitive.
    primitive: Callable[[Any, Mapping[str, Any]], Any] | None = None
    #: Called with the package ``mindspore`` if the device has no kernel for the primitive: the gradient that
    #: MindSpore's own differentiation composes.
    composed: Callable[[Any, Mapping[str, Any]], Any] | None = None
    #: The dtypes of class indices that it takes.
    index_types: tuple[str, ...] = ("int32", "int64")
    #: Whether it takes inputs of different float types.
    mixed: bool = False
    #: Whether it reads only one value of the gradient under a reduction.
    scalar_gradient: bool = False
    #: The ranks of the main operand that the CPU kernel supports. None: all.
    ranks: tuple[int, ...] | None = None


def differentiated(ms: Any, function: Callable[[Any], Any], x: Any, gradient: Any) -> Any:
    """Return the result of MindSpore's own differentiation of a function at x, for an incoming gradient."""
    return ms.vjp(function, x)[1](gradient)[0]


def torch_npu(name: str) -> Any:
    """Return a torch_npu operator that aten does not have."""
    import torch

    return getattr(torch.ops.npu, name)
