"""An operator's declaration, and the properties that follow from it for any operator."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...model.aclnn import PLATFORMS, Platform
from ...model.call import TensorSpec
from ...model.dtypes import dtype_of
from ...numerics.orders.formula import Formula, is_elementwise
from ...numerics.orders.given import Given
from ...numerics.orders.reducing import reduces
from .checks import Args, Checks, broadcast_shape, promoted
from .parameters import NONE, Aten, Forward, KernelName, MindSpore, Parameter
from .roles import MAIN, MUTUAL, Attributes, Role, Shape, class_axis

BUILT_IN = "aclnn-oracle"  # the origin of this package's pages
Arguments = Mapping[str, Any]  # arrays (or None) and attributes by aclnn name


def slug_of(name: str) -> str:
    """Return an operator's name in case ids and files: ``softmax_backward`` for ``aclnnSoftmaxBackward``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name.removeprefix("aclnn"))
    return words.lower()


@dataclass(frozen=True)
class Result:
    """A further output. Its fields mean the same as the fields of :class:`Operator` for the first output. If ``like``,
    ``dtype``, ``kernel_type``, ``filled`` or ``filling`` is empty, the first output's value applies."""

    shape: Callable[[Arguments], Shape]
    computes: Formula | Given
    terms: Callable[[Arguments], Shape] | None = None
    kept: Callable[[Arguments], Shape] | None = None
    like: str = ""
    dtype: str = ""
    kernel_type: Callable[[Arguments, Platform], str] | None = None
    filled: Callable[[Arguments], float | None] | None = None
    #: The products that fill it; default: all.
    filling: Callable[[Platform], bool] | None = None
    #: Whether the host leaves it unchanged in a call that writes the first output.
    skipped: Callable[[Arguments], bool] | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that replace the first output's in an operator that has this output alone."""
        return {name: value for name, value in vars(self).items() if value or name in ("terms", "kept")}


@dataclass(frozen=True, eq=False)
class Operator:
    """One aclnn operator: all its particular properties.

    Its functions receive a call's tensors (arrays, or descriptions of them) and attributes, by aclnn name.
    """

    #: The aclnn name, as ``aclnnSoftmaxBackward``.
    name: str
    #: In the order of GetWorkspaceSize.
    parameters: tuple[Parameter, ...]
    #: The checks of GetWorkspaceSize in the source's order.
    checks: Callable[[Args, Platform], Checks]
    #: The first output's formula with its kernels' orders; or a function (:class:`Given`).
    computes: Formula | Given

    #: The SoCs that the documents list; default: all.
    documented: tuple[str, ...] = tuple(reversed(PLATFORMS))

    # Further rules of the host.

    #: The inputs whose emptiness ends a call that passed the checks; default: all. It writes only ``filled`` outputs.
    empty: tuple[str, ...] | None = None
    #: Demands of the document that the host does not check.
    demands: Callable[[Args, Platform], Checks] | None = None
    #: Why the result of a call that passes the checks is unspecified, else None. It gets the output's TensorSpec too.
    undefined: Callable[[Arguments], str | None] | None = None
    #: The value that a call ended by an empty input fills its output with; None if it writes no value.
    filled: Callable[[Arguments], float | None] | None = None
    #: The products that fill it; default: all.
    filling: Callable[[Platform], bool] | None = None
    #: The versions of CANN that changed a check.
    changed: tuple[str, ...] = ()
    #: The file of the host's checks.
    source: str = ""

    # The first output, if it does not have the main operand's shape and dtype (or the common ones of MUTUAL inputs).

    #: Its shape.
    shape: Callable[[Arguments], Shape] | None = None
    #: The input that gives its default dtype.
    like: str = ""
    #: Its fixed dtype, which does not follow the inputs'.
    dtype: str = ""
    #: The dtype that the host rounds a result to before the cast to the output; default: the main operand's. The
    #: function receives every argument, also the outputs.
    kernel_type: Callable[[Arguments, Platform], str] | None = None

    # The formula's inputs in addition to the operands, and the points near which it changes.

    #: The divisor of a mean; default: the number of the main operand's elements.
    mean: Callable[[Arguments], int] | None = None
    #: The integer type that the host casts class indices to on a SoC; default: their own.
    indices: Callable[[Platform], str] | None = None
    #: Numbers that the host computes from the attributes for the kernel, by symbol.
    scalars: Callable[[Arguments], Mapping[str, float]] | None = None
    #: Operand values, by symbol, near which the formula or a kernel changes its method; cases visit them.
    points: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    # Sums: the formula gives more values than the output has elements.

    #: The shape of the formula's values. Values that share an element of the output are summed.
    terms: Callable[[Arguments], Shape] | None = None
    #: The output's shape in the axes of these values, 1 along a summed axis; default: the output is right-aligned.
    kept: Callable[[Arguments], Shape] | None = None

    #: The dtype in which terms are added; default: the dtype that the host rounds a result to.
    added: str = ""

    # Several outputs.

    #: The outputs after the first, by name.
    further: Mapping[str, Result] = field(default_factory=dict)
    #: Whether the host leaves an output unchanged (see Result).
    skipped: Callable[[Arguments], bool] | None = None
    #: The operator with all outputs, if this one is reduced to one of them (see ``each``).
    whole: Operator | None = None
    #: The output that this one is reduced to. Empty: the first.
    written: str = ""

    # The operator elsewhere, and the origin of the page.

    #: The operators whose results this gradient reads.
    forwards: tuple[Forward, ...] = ()
    kernel: KernelName | None = None
    aten: Aten | None = None
    mindspore: MindSpore | None = None
    #: Returns the wrong and right kernels of a page from outside; those of this package are in ``published/``.
    published: Callable[[], Iterable[Any]] | None = None
    #: The package or option that brought the page.
    origin: str = BUILT_IN

    # ---- names ----

    @cached_property
    def slug(self) -> str:
        """The name in case ids and files: ``softmax_backward`` of ``aclnnSoftmaxBackward``."""
        return slug_of(self.name)

    @property
    def is_built_in(self) -> bool:
        """Whether its page is one of this package's."""
        return self.origin == BUILT_IN

    @cached_property
    def by_name(self) -> Mapping[str, Parameter]:
        """The parameters by their aclnn names."""
        return {p.name: p for p in self.parameters}

    @cached_property
    def by_symbol(self) -> Mapping[str, Parameter]:
        """The parameters by the symbols that stand for them in formulas."""
        return {symbol: p for p in self.parameters for symbol in p.symbols}

    def names(self, *kinds: str) -> tuple[str, ...]:
        """Return the parameter names of the given kinds, in the order of GetWorkspaceSize."""
        return tuple(p.name for p in self.parameters if p.kind in kinds)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs, the first one first."""
        return self.names("output")

    @cached_property
    def output(self) -> str:
        """The first output, or the output that this operator is reduced to."""
        return self.written or self.outputs[0]

    @cached_property
    def each(self) -> tuple[Operator, ...]:
        """The operator once for each output, reduced to that output. Code that looks at one output uses these."""
        if self.whole is not None:
            return self.whole.each
        return (self, *(replace(self, whole=self, written=n, **r.fields) for n, r in self.further.items()))

    def of(self, output: str) -> Operator:
        """Return the operator reduced to one of its outputs. An empty name changes nothing."""
        if output in ("", self.output):
            return self
        return next(each for each in self.each if each.output == output)

    @cached_property
    def main(self) -> str:
        """The input whose shape and dtype the output has by default."""
        return next(p.name for p in self.parameters if p.role is MAIN)

    @cached_property
    def attributes(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.kind == "attr")

    def usual(self, main: Shape) -> dict[str, Any]:
        """Return the attributes' usual values for a shape of the main operand."""
        return {p.name: p.usual(main) for p in self.attributes}

    def usual_call(
        self, main: Shape, dtype: str = "float32", attributes: Attributes | None = None, absent: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return the parameters of a usual call without data for a shape of the main operand. ``attributes``: values
        that are not the usual ones. ``absent``: inputs that are null pointers."""
        given = {**self.usual(main), **(attributes or {})}
        for p in self.inputs():
            kind = "int64" if p.holds("classes") else p.dtype or dtype
            given[p.name] = None if p.name in absent else TensorSpec(self.shape_of(p.name, main, given), kind)
        return given | {each.output: TensorSpec(each.output_shape(given), each.dtype or dtype) for each in self.each}

    def attribute(self, role: str) -> Parameter | None:
        """Return the attribute of a role (``axis``, ``reduction``, ``ignore index``), if there is one."""
        return next((p for p in self.parameters if p.kind == "attr" and p.role == role), None)

    def inputs(self, *roles: Role) -> tuple[Parameter, ...]:
        """Return the input parameters with the given roles; all inputs if no role is given."""
        return tuple(p for p in self.parameters if p.kind == "input" and (not roles or p.role in roles))

    @cached_property
    def mutual(self) -> tuple[str, ...]:
        """The inputs that broadcast together with the main operand."""
        return tuple(p.name for p in self.inputs(MUTUAL))

    @cached_property
    def operands(self) -> tuple[Parameter, ...]:
        """The inputs whose floating-point values enter the result."""
        result = tuple(p for p in self.inputs() if p.read and p.symbol and not p.holds("classes"))
        if self.whole is None or not isinstance(self.computes, Formula):
            return result
        entering = self.computes.value_operands  # one output can need fewer
        return tuple(p for p in result if p.enters(entering))

    @cached_property
    def gradient(self) -> str | None:
        """The input that holds the incoming gradient, if there is one."""
        symbol = self.computes.gradient if is_elementwise(self.computes) else "g"
        return next((p.name for p in self.inputs() if p.symbol == symbol), None)

    @cached_property
    def reduction(self) -> Parameter | None:
        """The attribute that selects a loss's reduction, if there is one."""
        return self.attribute("reduction")

    @cached_property
    def class_index(self) -> str | None:
        """The input that holds the class of each sample, if there is one."""
        return next((p.name for p in self.parameters if p.holds("classes")), None)

    # ---- shapes ----

    def by_role(self, attributes: Attributes) -> dict[str, Any]:
        """Return attribute values by role."""
        return {str(p.role): attributes[p.name] for p in self.attributes if p.name in attributes}

    def shape_of(self, name: str, main: Shape, attributes: Attributes) -> Shape:
        """Return the shape of an input for a shape of the main operand."""
        role = self.by_name[name].role
        assert isinstance(role, Role)
        return role.shape(main, self.by_role(attributes))

    def axes_of(self, name: str, main: Shape, own: Shape, attributes: Attributes) -> tuple[int | None, ...]:
        """Return, for each axis of a tensor, the axis of the main operand (and of the first output) it runs along."""
        role = self.by_name[name].role
        if name == self.outputs[0]:
            return tuple(range(len(own)))
        assert isinstance(role, Role)
        return role.axes(main, own, self.by_role(attributes))

    def output_shape(self, a: Arguments) -> Shape:
        """Return the output's shape for inputs that have shapes (arrays or descriptions)."""
        return self.common_shape(a) if self.shape is None else self.shape(a)

    def common_shape(self, a: Arguments) -> Shape:
        """Return the common shape of the main operand and of the inputs that broadcast together with it."""
        shape: Shape = tuple(a[self.main].shape)
        for name in self.mutual:
            if a.get(name) is not None:
                shape = broadcast_shape(shape, tuple(a[name].shape)) or shape
        return shape

    def slice_axes(self, shape: Shape, attributes: Attributes, shapes: Mapping[str, Shape]) -> tuple[int, ...]:
        """Return the output's axes along which the operator works slice by slice: all axes that it does not reduce.
        Under a mean over elements or over the batch there is none. ``shapes``: the inputs' shapes, by name."""
        given = self.by_role(attributes)
        rank = max(1, len(shape))
        if self.class_index is not None:
            classes = self.class_axis(shape, attributes)
            return tuple(k for k in range(len(shape)) if k != classes)
        if given.get("reduction") in self._means:
            return ()
        reduced = {given["axis"] % rank} if "axis" in given else set()
        for each in self.each:
            if reduces(each.computes) and "axis" not in given:
                reduced.update(each.reduced_in(shape, attributes, shapes))
        return tuple(k for k in range(len(shape)) if k not in reduced)

    @cached_property
    def _means(self) -> tuple[int, ...]:
        return tuple(n for n, word in enumerate(self.reduction.words if self.reduction else ()) if "mean" in word)

    def class_axis(self, shape: Shape, attributes: Attributes) -> int | None:
        """Return the output's axis of classes: the axis that the class indices do not run along."""
        if self.class_index is None:
            return None
        samples = self.axes_of(self.class_index, shape, self.shape_of(self.class_index, shape, attributes), attributes)
        return next((k for k in range(len(shape)) if k not in samples), None)

    # ---- computing ----

    def host_type(self, a: Arguments, platform: Platform) -> str:
        """Return the dtype that the host rounds to before the cast to the output."""
        if self.kernel_type is not None:
            return self.kernel_type(a, platform)
        if self.dtype:
            return self.dtype
        return dtype_of(a[self.main].dtype).name

    def output_dtype(self, a: Arguments) -> str:
        """Return the output's documented dtype: the common one of inputs that broadcast together, else the main's."""
        if self.dtype:
            return self.dtype
        names = [self.like] if self.like else [self.main, *self.mutual]
        kinds = [dtype_of(a[name].dtype).name for name in names if a.get(name) is not None]
        return promoted(*kinds) or kinds[0]

    def ends_early(self, a: Arguments) -> bool:
        """Return whether an empty tensor makes the host return before the kernel."""
        names = self.names("input") if self.empty is None else self.empty
        return any(0 in a[name].shape for name in names if a.get(name) is not None)

    def skips(self, a: Arguments) -> bool:
        """Return whether a call leaves the output unchanged: it does not request it, or the host does not write it."""
        mask = self.attribute("mask")
        asked = mask is None or a[mask.name][self.outputs.index(self.output)]
        return not asked or (self.skipped is not None and self.skipped(a))

    def fill_of(self, a: Arguments, platform: Platform) -> float | None:
        """Return the value that a call that ends early fills its output with; None if it writes no value."""
        fills = self.filled is not None and (self.filling is None or self.filling(platform))
        return self.filled(a) if fills and self.filled is not None else None

    def added_type(self, a: Arguments, platform: Platform) -> str:
        """Return the dtype in which terms are added."""
        return self.added or self.host_type(a, platform)

    def terms_shape(self, a: Arguments) -> Shape:
        """Return the shape of the formula's values: the output's, or a larger shape whose values are summed. For a
        formula with reductions it is the shape of the main operand."""
        if self.terms is not None:
            return self.terms(a)
        if not reduces(self.computes):
            return self.output_shape(a)
        shape = tuple(a[self.main].shape)
        groups = self.attribute("groups")
        if groups is None or not self.reduces_groups:
            return shape
        count = a[groups.name]  # split the axis of channels: groups, and the channels of a group
        return (*shape[:1], count, shape[1] // count, *shape[2:])

    @cached_property
    def reduces_groups(self) -> bool:
        """Whether the formula's reductions run over groups of channels."""
        groups = self.attribute("groups")
        return groups is not None and isinstance(self.computes, Formula) and self.computes.over == groups.name

    def gives_rows(self, a: Arguments) -> bool:
        """Return whether the output of a formula with reductions has one element per row."""
        return math.prod(self.output_shape(a)) != math.prod(self.terms_shape(a))

    def reduced_axes(self, a: Arguments) -> tuple[int, ...]:
        """Return the axes of the formula's values along which its reductions run."""
        assert isinstance(self.computes, Formula)
        if self.reduces_groups:
            return tuple(range(2, len(self.terms_shape(a))))
        name = self.computes.over.rpartition("all but ")[2]
        shapes = {name: a[name].shape} if isinstance(a.get(name), np.ndarray) else {}
        return self.reduced_in(self.terms_shape(a), a, shapes)

    def reduced_in(self, shape: Shape, attributes: Attributes, shapes: Mapping[str, Shape]) -> tuple[int, ...]:
        """Return the axes of a shape along which the formula's reductions run (``Formula.over``). ``shapes``: the
        inputs' shapes, by name."""
        assert isinstance(self.computes, Formula)
        rank = max(1, len(shape))
        _, but, name = self.computes.over.rpartition("all but ")
        if name == "all":
            return tuple(range(rank))
        role = self.by_name[name].role
        if role == "reduction":
            return (class_axis(shape),) if attributes[name] == NONE else tuple(range(rank))
        if role == "axis":
            result: tuple[int, ...] = (int(attributes[name]) % rank,)
        elif role == "lengths":
            result = tuple(range(len(shape) - len(attributes[name]), len(shape)))
        elif role == "groups":
            result = tuple(range(1, rank))
        else:
            own = shapes.get(name) or self.shape_of(name, shape, attributes)  # an operand can be absent
            result = tuple(k for k in self.axes_of(name, shape, own, attributes) if k is not None)
        return tuple(k for k in range(rank) if (k in result) is not bool(but))

    def kept_shape(self, a: Arguments) -> Shape:
        """Return the output's shape in the axes of the formula's values: 1 along the summed axes."""
        if self.kept is not None:
            return self.kept(a)
        shape = self.output_shape(a)
        return (1,) * (len(self.terms_shape(a)) - len(shape)) + shape
