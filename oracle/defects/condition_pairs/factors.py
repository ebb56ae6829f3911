"""The factors in which calls of an operator differ: conditions on which a kernel may choose its path.

A condition is a value of one factor. Factors are the rank and size of the main operand, the form in memory of each
operand, a dtype, an attribute, and a class of the shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial, reduce
from itertools import product

import numpy as np

from ...model import classes
from ...model.call import Array, Call, strides_of
from ...model.classes import Shape
from ...model.dtypes import dtype_of
from ...operators.definition.operator import Operator
from ...operators.definition.parameters import REDUCTIONS, Parameter
from ...operators.definition.roles import ONE_VALUE, PER_CLASS, UNREAD
from ..base import rows, samples
from ..base.queries import (
    accepted_values,
    any_shape,
    broadcasting,
    index_types,
    is_vector,
    kinds,
    mixes,
    ranks,
    summed_to,
    terms_shape,
    unwritten_words,
)
from ..one_change.numbers import formula_is_zero, signs

Label = Callable[[Call], str]
Factor = tuple[str, Label, tuple[str, ...]]  # name, the function from a call to its value, the mutated values
Condition = tuple[str, str]  # a factor and one of its values

SIZES = ("up to 2048", "2049 to 65536", "above 65536")
LENGTHS = ("up to 64", "65 to 1024", "above 1024")
ALONG, EXPANDED, MIDDLE = classes.ALONG, classes.EXPANDED, classes.MIDDLE
ORDER = (classes.IN_ORDER, classes.NOT_CONTIGUOUS)
FORMS = (*ORDER, EXPANDED, classes.OF_ONE, *ALONG)
ABSENT, SAME, OTHER = "absent", "same", "other"
MIXED = (SAME, OTHER)
TYPE = "'s dtype"
OUTPUT_TYPE = f"the output{TYPE}"
BEGINS, FOLLOWS = "'s place", "'s strides"  # factors of a tensor: its offset in the storage, the class of its strides


def _among(bounds: tuple[int, ...], names: tuple[str, ...]) -> Callable[[int], str]:
    return lambda n: names[sum(n > bound for bound in bounds)]


_size = _among((2048, 65536), SIZES)
_length = _among((64, 1024), LENGTHS)


def _form(name: str, call: Call) -> str:
    """Return an operand's form in memory, or the axes of the formula's values that it varies along."""
    array = call.inputs[name]
    return ABSENT if array is None else classes.form_class(array.shape, strides_of(array), terms_shape(call))


def _shape(call: Call) -> str:
    shape = terms_shape(call)
    return f"rank {len(shape)} {_size(math.prod(shape))}"


def _layout(name: str, call: Call) -> str:
    """Return the order of an input's elements."""
    array = call.inputs[name]
    return ABSENT if array is None else _order(array)


def _order(array: Array) -> str:
    return classes.order_class(array.shape, strides_of(array))


def _output(call: Call) -> Array:
    """Return the (first) output."""
    return np.asarray(next(iter(call.outputs.values())))


def type_of(name: str) -> str:
    """Return the name of the factor of a tensor's dtype."""
    return f"{name}{TYPE}"


def _other(name: str, main: str, call: Call) -> str:
    """Return whether an operand has another dtype than the main one."""
    array = call.inputs[name]
    return SAME if array is None or array.dtype == call.inputs[main].dtype else OTHER


def factors_of(op: Operator) -> list[Factor]:
    """Return the factors of an operator."""
    return [*_general(op), *_attributes(op), *_operands(op)]


def _general(op: Operator) -> Iterator[Factor]:
    """Yield the factors dtype; rank with size, or samples and classes; the output's layout and dtype."""
    main = op.main
    yield "dtype", lambda call: dtype_of(call.inputs[main].dtype).name, kinds(op)
    if samples.fits(op):
        alone = ("no axis of",) if 1 in ranks(op) else ()
        yield "samples", partial(_samples, op), (*alone, *LENGTHS)
        yield "classes", lambda call: _length(samples.classes_of(op, call.arguments)), LENGTHS
    else:
        first = 2 if broadcasting(op) or op.attribute("axis") is not None else 1
        shapes = tuple(f"rank {rank} {size}" for rank in ranks(op) if rank >= first for size in SIZES)
        yield "shape", _shape, shapes
    # one number is always contiguous; a reduction to more may not write this output
    one_number = summed_to(op.whole or op) == () and REDUCTIONS[0] in unwritten_words(op)
    yield "the output", lambda call: _order(_output(call)), ORDER[:1] if one_number else ORDER
    if mixes(op, op.output):
        yield OUTPUT_TYPE, lambda call: SAME if _output(call).dtype == call.inputs[main].dtype else OTHER, MIXED


def _samples(op: Operator, call: Call) -> str:
    array, classes = call.inputs[op.main], samples.classes_of(op, call.arguments)
    return "no axis of" if array.ndim == 1 else _length(array.size // classes if classes else 0)


def _attributes(op: Operator) -> Iterator[Factor]:
    for p in op.attributes:
        if p.role == "axis":
            places = product(("last", "first", "middle"), ("positive", "negative"))
            yield p.name, partial(_axis, op, p.name), tuple(f"{place} axis, {sign} {p.name}" for place, sign in places)
            yield "reduced length", partial(_reduced, op, p.name), LENGTHS
        elif p.role == "reduction":
            yield "reduction", partial(_word, p), tuple(word for word in REDUCTIONS if word not in unwritten_words(op))
        elif p.role == "ignore index":
            outside = "outside the classes, and occurs"
            yield p.name, partial(_ignored, op, p.name), ("a class that occurs", outside, "outside the classes")
        elif p.role == "number":
            kept = [
                w for w, v in signs(p).items() if accepted_values(op, p.name, (v,)) and not formula_is_zero(op, p, v)
            ]
            if len(kept) > 1:
                yield p.name, partial(_sign, p.name), tuple(kept)
        elif p.role == "flag" and len(accepted_values(op, p.name, (True, False))) > 1:
            yield p.name, partial(_truth, p.name), ("true", "false")
        elif p.role == "choice":
            yield p.name, partial(_word, p), p.words


def _axis(op: Operator, name: str, call: Call) -> str:
    rank, value = call.inputs[op.main].ndim, call.attrs[name]
    where = classes.place(call.inputs[op.main].shape, value % max(rank, 1))
    return f"{where} axis, {'negative' if value < 0 else 'positive'} {name}"


def _reduced(op: Operator, name: str, call: Call) -> str:
    array = call.inputs[op.main]
    return _length(array.shape[call.attrs[name]] if array.ndim else 1)


def _word(p: Parameter, call: Call) -> str:
    """Return a choice's word, also of a number; some hosts accept numbers without a word."""
    value = call.attrs[p.name]
    if value is None:
        return ABSENT
    if isinstance(value, str):
        return value
    return p.words[value] if 0 <= value < len(p.words) else "otherwise"


def _truth(name: str, call: Call) -> str:
    return "true" if call.attrs[name] else "false"


def _sign(name: str, call: Call) -> str:
    value = call.attrs[name]
    return ABSENT if value is None else "zero" if value == 0 else "negative" if value < 0 else "positive"


def _ignored(op: Operator, name: str, call: Call) -> str:
    ignore = call.attrs[name]
    occurs = (call.inputs[samples.index_of(op).name] == ignore).any()
    if 0 <= ignore < samples.classes_of(op, call.arguments):
        return "a class that occurs" if occurs else "a class"
    return "outside the classes, and occurs" if occurs else "outside the classes"


def _operands(op: Operator) -> Iterator[Factor]:
    """Yield the factors of each input: its layout or broadcast, and whether its dtype differs from the main one."""
    spread = broadcasting(op)
    for p in op.inputs():
        absent = (ABSENT,) if p.optional else ()
        if p.role is ONE_VALUE:
            continue
        if p in spread:
            yield p.name, partial(_form, p.name), (*FORMS, *absent)
        elif p.role is UNREAD:
            if any_shape(op, p.name):
                yield p.name, partial(_unread, op, p.name), ("in place", "empty")
        else:
            known = (*ORDER, "expanded") if not (spread or samples.fits(op)) else ORDER
            yield p.name, partial(_layout, p.name), (*known, *absent)
        if p.name != op.main and p in op.operands and mixes(op, p.name):
            yield type_of(p.name), partial(_other, p.name, op.main), MIXED
    if samples.fits(op):
        index = samples.index_of(op).name
        yield f"{index}'s type", lambda call: str(call.inputs[index].dtype), index_types(op)


def _unread(op: Operator, name: str, call: Call) -> str:
    array = call.inputs[name]
    if array is None:
        return ABSENT
    return "empty" if not array.size else "in place" if array.shape == call.inputs[op.main].shape else "otherwise"


def class_factors(op: Operator) -> list[Factor]:
    """Return the classes of shapes, and of an axis along which terms are summed, as factors. Empty for a loss whose
    classes lie on an axis other than the last of two."""
    if samples.fits(op) and max(ranks(op)) > 2:
        return []
    known = [word for word in classes.RANKS if int(word) in ranks(op)]
    kinds_of = {**classes.SHAPE_FACTORS, "rank": tuple(known if len(known) > 1 else ())}
    result: list[Factor] = [
        (name, partial(_class, op.main, place), words) for place, (name, words) in enumerate(kinds_of.items())
    ]
    if rows.fits(op):
        along = partial(_axis_class, op.main, rows.axis_name(op))
        result += [(k, partial(along, i), words) for i, (k, words) in enumerate(classes.AXIS_FACTORS.items())]
    return [factor for factor in result if factor[2]]


def is_class(condition: Sequence[str]) -> bool:
    """Return whether a condition is a class of shapes or of the reduced axis."""
    return condition[0] in classes.SHAPE_FACTORS or condition[0] in classes.AXIS_FACTORS


def is_layout(condition: Sequence[str]) -> bool:
    """Return whether a condition is a class of a tensor's layout."""
    return condition[0].endswith((BEGINS, FOLLOWS))


def _class(main: str, place: int, call: Call) -> str:
    shape = call.inputs[main].shape
    return classes.shape_classes(shape)[place] if len(shape) > 1 else classes.OTHER


def _axis_class(main: str, axis: str, place: int, call: Call) -> str:
    shape = call.inputs[main].shape
    return classes.axis_classes(shape, call.attrs[axis] % len(shape))[place] if shape else classes.OTHER


def layout_factors(op: Operator) -> list[Factor]:
    """Return the factors that layouts of tensors can meet: dtype, attributes, the place of each tensor in its storage,
    and its strides."""
    attributes = {p.name for p in op.attributes}
    result = [factor for factor in factors_of(op) if factor[0] == "dtype" or factor[0] in attributes]
    vectors = {p.name for p in op.inputs() if is_vector(op, p)}
    for name in (*(p.name for p in op.inputs() if p.read), op.output):
        result.append((f"{name}{BEGINS}", partial(_begins, name), classes.OFFSETS))
        if op.by_name[name].role is not ONE_VALUE:
            known = classes.OF_VECTORS if name in vectors else classes.STRIDES
            words = classes.OF_OUTPUTS if name == op.output else known
            result.append((f"{name}{FOLLOWS}", partial(_follows, name), words))
    return result


def _begins(name: str, call: Call) -> str:
    spec = call.spec(name)
    return ABSENT if spec is None else classes.offset_class(spec.offset)


def _follows(name: str, call: Call) -> str:
    array = call.inputs[name] if name in call.inputs else call.outputs[name]
    return ABSENT if array is None else classes.stride_class(array.shape, strides_of(array))


# The small shapes that satisfy conditions: a call of such a shape can have a form, an axis, an ignored class.
#
# Conditions can meet if one shape satisfies them all. Each condition has a set of shapes: the bits of an integer.

Holds = Callable[[Shape, int], bool]  # whether a shape and its reduced axis satisfy a condition


def meet(op: Operator, conditions: Sequence[Condition]) -> bool:
    """Return whether a small shape satisfies all conditions on the shape."""
    along = any(factor in classes.AXIS_FACTORS for factor, _ in conditions)
    return bool(reduce(int.__and__, (_with(op, condition, along) for condition in conditions), -1))


@cache
def _with(op: Operator, condition: Condition, along: bool) -> int:
    """Return the shapes that satisfy a condition; -1 (all bits) if it does not concern the shape. ``along``: use shapes
    of every class of the reduced axis."""
    holds = _asks(op, *condition, along)
    return -1 if holds is None else sum(1 << k for k, each in enumerate(_shapes(op, along)) if holds(*each))


@cache
def _shapes(op: Operator, along: bool) -> Sequence[tuple[Shape, int]]:
    if along:
        return classes.reduced_shapes()
    counts = ("", *classes.LARGE)
    shapes = [shape for count in counts for shape in classes.small_shapes(2, max(ranks(op)), count)]
    return [(shape, len(shape) - 1) for shape in shapes]


def _asks(op: Operator, factor: str, value: str, along: bool) -> Holds | None:
    """Return the test that a condition makes of the main operand's shape; None if it makes none."""
    if factor in classes.SHAPE_FACTORS:
        kind = list(classes.SHAPE_FACTORS).index(factor)
        return lambda shape, _: classes.shape_classes(shape)[kind] == value
    if factor in classes.AXIS_FACTORS:
        kind = list(classes.AXIS_FACTORS).index(factor)
        return lambda shape, axis: classes.axis_classes(shape, axis)[kind] == value
    if factor in {p.name for p in broadcasting(op)}:
        return _FORMS.get(value)
    axis, ignored = op.attribute("axis"), op.attribute("ignore index")
    if axis is not None and factor == axis.name:
        if along:
            return lambda shape, axis: value.startswith(classes.place(shape, axis))
        return (lambda shape, _: len(shape) > 2) if value.startswith("middle") else None
    if not samples.fits(op):
        return None
    if ignored is not None and factor == ignored.name:
        return _IGNORED.get(value)
    vectors = [p for p in op.inputs() if is_vector(op, p)]
    if value == ORDER[1] and factor in {p.name for p in vectors}:  # a single element is always contiguous
        place = -1 if op.by_name[factor].role is PER_CLASS else 0
        return lambda shape, _: shape[place] > 1
    return None


_FORMS: dict[str, Holds] = {  # a form is distinct only if the omitted axes are longer than 1
    ALONG[0]: lambda shape, _: shape[-1] > 1 and max(shape[:-1]) > 1,
    ALONG[1]: lambda shape, _: shape[-1] > 1 and max(shape[:-1]) > 1,
    ALONG[2]: lambda shape, _: shape[0] > 1 and max(shape[1:-1], default=1) > 1,
    MIDDLE: lambda shape, _: any(
        shape[k] > 1 and max(shape[:k] + shape[k + 1 : -1]) > 1 for k in range(1, len(shape) - 1)
    ),
}
_IGNORED: dict[str, Holds] = {  # some sample of another class must remain
    "a class that occurs": lambda shape, _: min(shape) > 1,
    "outside the classes, and occurs": lambda shape, _: shape[0] > 1,
}
