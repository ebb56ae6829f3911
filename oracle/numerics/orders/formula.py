"""A page's formula, and the orders in which public kernels compute it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import NamedTuple, TypeGuard, TypeVar

from ...model.aclnn import CANN, PLATFORMS
from ...model.errors import OracleError
from ..expressions import LENGTH, PLACE, Expression, Function, symbols_of, trace
from ..programs import Operands
from ..traversal import AtPlace, at_place, names_of, picked

T = TypeVar("T")
COUNT = "n"  # the symbol of the mean's divisor
PART = "part"  # the symbol of an element's part of the output, if an input has parts: 0, 1 ...


@dataclass(frozen=True)
class Form:
    """An order in which a right kernel computes.

    ``formula``: uses the same symbols as the operator's formula. Without an operand ``n``, its final result is
    multiplied by the mean's factor. With ``mean="first"`` the gradient is multiplied before, with ``mean="sum"`` the
    sum of the values is. ``native``: dtypes in which this kernel computes instead of in float32. ``departs``: the
    kernel of some SoCs computes something else, or has a much larger loss than others. Its loss, and its distance from
    the formula, are allowed on its own SoCs alone. ``answers``: for a formula with reductions, the order of a simulated
    device. It is needed if the SoCs have several kernels and ``formula`` belongs to the one with the largest loss.
    """

    formula: Function
    mean: str = "last"
    native: tuple[str, ...] = ()
    departs: bool = False
    answers: Function | None = None


@dataclass(frozen=True)
class Formula:
    """A formula and the orders in which public kernels compute it.

    ``orders``: by the name of the SoCs' kernel (``950``, ``tbe_a2``, ``tbe_910``, or ``tbe`` for the last two). Any
    other name is an order that no public kernel has but a right kernel can have. Without ``orders``, the formula's own
    order. ``over``: the axes of the formula's reductions (:mod:`.reducing`); an elementwise formula has none.
    ``gradient``: the symbol that a mean's factor is multiplied to first. A formula without ``n`` is divided by it.
    ``unspecified``: kernel -> a condition of some operands. Where it is true, the kernel's answer is unknown. The
    kernel's name is one of ``orders``, alone or with the stored dtype (``tbe_a2 bfloat16``); ``""`` means all others.
    If a kernel's order departs, both answers are valid without a condition. ``specials``: another formula for operands
    that are not finite; its IEEE float64 evaluation gives the answer. It is needed if the formula clamps an operand
    against underflow, because the clamp hides inf * 0. ``integers``: another formula for a kernel with an integer type:
    it rounds no step.
    """

    formula: Function
    orders: Mapping[str, Form | Function] | None = None
    over: str = ""
    gradient: str = "g"
    unspecified: Mapping[str, Function] = field(default_factory=dict)
    specials: Function | None = None
    integers: Function | None = None

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The operands that the formula names, without the mean's divisor."""
        return tuple(name for name in symbols_of(self.formula) if name not in (COUNT, LENGTH))

    @cached_property
    def value_operands(self) -> tuple[str, ...]:
        """The operands that the formula's value depends on."""
        return tuple(name for name in names_of(trace(self.formula)) if name not in (COUNT, LENGTH, PLACE))

    @cached_property
    def knows_places(self) -> bool:
        """Return whether the formula's value depends on an element's own index along the axis."""
        return PLACE in names_of(trace(self.formula))

    @cached_property
    def at_place(self) -> PlaceFormula | None:
        """The formula at the one place of each row where it is not zero; None for any other formula."""
        result = at_place(trace(self.formula)) if self.knows_places else None
        if result is None:
            return None
        return PlaceFormula.of(result, self._changed(lambda graph: _at_one_place(at_place(graph)).value), "")

    @cached_property
    def picked(self) -> PlaceFormula | None:
        """The formula of the rows that take part, if it sums values that are zero except at one place of each row."""
        result = picked(trace(self.formula)) if self.knows_places else None
        if result is None:
            return None
        return PlaceFormula.of(result[0], self._changed(lambda graph: _at_one_place(picked(graph))[0].value), "all")

    @cached_property
    def of_one_row(self) -> Formula:
        """The formula for one row that takes part, if the formula is :attr:`picked`."""
        return replace(self._changed(lambda graph: _at_one_place(picked(graph))[1]), over="")

    def _changed(self, change: Callable[[Expression], Expression]) -> Formula:
        """Return a copy with every order's graph changed."""

        def changed(formula: Function) -> Function:
            return wraps(formula)(lambda *operands: change(formula(*operands)))

        orders = {name: replace(form, formula=changed(form.formula)) for name, form in self.forms.items()}
        return replace(self, formula=changed(self.formula), orders=orders or None)

    @property
    def forms(self) -> dict[str, Form]:
        """The orders by name; plain functions become forms."""
        return {name: f if isinstance(f, Form) else Form(f) for name, f in (self.orders or {}).items()}

    @cached_property
    def written(self) -> dict[str, Form]:
        """The orders by name, as forms; a formula without orders has its own order under the name ``""``."""
        return self.forms or {"": Form(self.formula)}

    def own(self, soc: str) -> Form | None:
        """Return the order of a SoC's kernel; None if the page has none for it."""
        return named(self.written, soc)

    def counted(self, soc: str) -> dict[str, Form]:
        """Return the orders that are right on a SoC: all except the departing orders of other SoCs."""
        own = self.own(soc)
        return {name: form for name, form in self.written.items() if form is own or not form.departs}

    def apart(self, soc: str, stored: str) -> Form | None:
        """Return a SoC's own order if its kernel departs from the formula or computes in the dtype that it stores. Such
        a kernel is right only on its SoCs."""
        own = self.own(soc)
        return own if own is not None and (own.departs or stored in own.native) else None

    @property
    def formulas(self) -> dict[str, Function]:
        """Every formula of an operator, by its place on the page."""
        orders = {f"orders[{name!r}]": form.formula for name, form in self.forms.items()}
        conditions = {f"unspecified[{k!r}]": c for k, c in self.unspecified.items()}
        others = {"specials": self.specials, "integers": self.integers}
        return {"formula": self.formula, **orders, **conditions, **{k: f for k, f in others.items() if f is not None}}

    def __hash__(self) -> int:
        return id(self)


class PlaceFormula(NamedTuple):
    """The computation of a formula that is zero except at one place of each row. It has that place and the conditions
    under which a row takes part, made of ``deciding`` operands. It also has the value there, made of ``entering``
    operands."""

    place: Expression
    conditions: tuple[Expression, ...]
    deciding: tuple[str, ...]
    value: Formula
    entering: tuple[str, ...]

    @classmethod
    def of(cls, inner: AtPlace, value: Formula, over: str) -> PlaceFormula:
        """Return the place formula of an inner graph. ``value``: the formula of the value, with its orders."""
        entering = names_of(*map(trace, value.formulas.values()))
        value = replace(value, over=over)
        return cls(inner.place, inner.conditions, names_of(inner.place, *inner.conditions), value, entering)


def _at_one_place(inner: T | None) -> T:
    """Return an order at the one place of each row where it is not zero; OracleError for any other order."""
    if inner is None:
        raise OracleError("every order is zero but at one place: write where(equal(place(), ...), value, 0)")
    return inner


def is_zero_except_at_place(computes: object) -> TypeGuard[Formula]:
    """Return whether a page's formula is zero except at one place of each row."""
    return isinstance(computes, Formula) and bool(computes.over) and computes.at_place is not None


def sums_place_values(computes: object) -> TypeGuard[Formula]:
    """Return whether a page's formula sums values that are zero except at one place of each row."""
    return isinstance(computes, Formula) and bool(computes.over) and computes.picked is not None


def is_elementwise(computes: object) -> TypeGuard[Formula]:
    """Return whether a page's formula computes each element from the operands at its place, or sums such values."""
    return isinstance(computes, Formula) and not computes.over


def condition_of(scheme: Formula, soc: str, dtype: str) -> Function | None:
    """Return the condition under which the answer of a SoC's kernel that stores a dtype is unknown."""
    own = f" {dtype}"
    of_type = {name.removesuffix(own): when for name, when in scheme.unspecified.items() if name.endswith(own)}
    return named({**scheme.unspecified, **of_type}, soc)


def is_public(name: str) -> bool:
    """Return whether an order belongs to a SoC's kernel, or to a family of kernels."""
    kernel = name.partition("@")[0]
    return any(p.kernel == kernel or p.kernel.startswith(f"{kernel}_") for p in PLATFORMS.values())


def named(forms: Mapping[str, T], kernel: str) -> T | None:
    """Return the entry for a SoC's kernel, with a version of CANN if given (``950@9.1``, which applies up to 9.1). Its
    key is the kernel's name, its family's (``tbe_a2_a3``, ``tbe_a2``, ``tbe``), or empty; None if there is no entry."""
    name, _, cann = kernel.partition("@")
    versions = CANN[CANN.index(cann) :] if cann else ()
    while True:
        result = next((key for key in (*(f"{name}@{v}" for v in versions), name) if key in forms), None)
        if result is not None or not name:
            return None if result is None else forms[result]
        name = name.rpartition("_")[0]


def constants_of(scheme: Formula, operands: Operands) -> frozenset[tuple[str, int]]:
    """Return the operands that are constants of the graphs: absent ones are 1, and flags are integers."""
    given = {name: operands.get(name, 1) for name in scheme.symbols}
    return frozenset((name, value) for name, value in given.items() if isinstance(value, int))
