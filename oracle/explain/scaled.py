"""Results that are wrong by a sign or by one factor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from ..model.call import Array, Call
from ..model.dtypes import FORMATS
from ..operators import OPERATORS
from ..operators.definition.parameters import MEAN
from ..operators.definition.roles import ONE_VALUE, PER_CLASS
from .findings import Findings, near, spreads
from .simulations import OR

OPPOSITE = 16  # units in the last place within which a number equals another one with the other sign
ALIKE = 2.0**-6  # the relative spread within which values are treated as one value
SLIGHT = 0.1  # a factor closer to 1 than this has a name only if it is off by a power of two
BY_A_FACTOR = ", as if "  # between a factor and the attribute that explains it
MANY_SIZES = 4  # distinct magnitudes that prove a factor without a name


def negated(findings: Findings) -> Iterator[str]:
    """Claim a wrong sign if every number except zeros has it. If only some have it, later rules decide."""
    value, actual = findings.reference.value, findings.actual.astype(np.float64)
    signed = np.isfinite(value) & (findings.golden != 0)
    opposite = near(findings.actual, -findings.golden, OPPOSITE) | (np.abs(actual + value) <= findings.reference.bound)
    opposite &= np.sign(actual) * np.sign(value) <= 0  # a bound may be wider than the number
    others = findings.bad & ~signed & ~(np.isinf(value) & (actual == -value))
    if _are_apart(findings, signed) and opposite[signed].all() and not others.any():
        yield "wrong sign"


def some_negated(findings: Findings) -> Iterator[str]:
    """Claim a wrong sign if some numbers have it, in a formula with results that are not all plus or minus one number.
    There a wrong comparison explains it."""
    g, a = findings.golden[findings.bad], findings.actual[findings.bad]
    if not np.isfinite(g).all() or not (g != 0).all() or not near(a, -g, OPPOSITE).all() or findings.call is None:
        return
    if not _are_apart(findings, findings.bad):
        return
    op = OPERATORS[findings.call.op]
    gradient = None if op.gradient is None else findings.call.inputs.get(op.gradient)
    if isinstance(gradient, np.ndarray) and spreads(gradient.shape, findings.golden.shape):
        ratios = np.abs(findings.reference.value / gradient.astype(np.float64))
        ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
        if ratios.size and np.ptp(ratios) > 2.0**-6 * np.median(ratios):
            yield "wrong sign"


def _are_apart(findings: Findings, where: Array) -> bool:
    """Return whether some wrong number is far from the right one: tiny subnormals are near their opposites."""
    return bool((~near(findings.actual, findings.golden, 4 * OPPOSITE) & findings.bad & where).any())


def factor(findings: Findings) -> Iterator[str]:
    """Claim that every number except zeros is wrong by the same factor, which has a name."""
    times, near_to = _common_factor(findings)
    if not times:
        return
    size = findings.golden.size
    if size > 1 and abs(times / size - 1) < near_to:
        yield f"the division by the element count {size} is missing"
    elif size > 1 and abs(times * size - 1) < near_to:
        divisor = wrong_divisor(times, near_to, findings.call)  # of a mean that is asked for
        yield divisor or f"divided by the element count {size}, which is not asked for"
    else:
        named = named_factor(times, near_to, findings.call)
        yield from filter(None, [wrong_divisor(times, near_to, findings.call)])
        proved = _sizes(findings) >= 3 and (abs(times - 1) < SLIGHT or not _of_one_value(findings))
        if named and (proved or "too many" in named):
            yield named


def any_factor(findings: Findings) -> Iterator[str]:
    """Claim that every number is wrong by the same factor without a name; numbers of many magnitudes prove it."""
    times, _ = _common_factor(findings)
    if times and _sizes(findings) >= MANY_SIZES and not _of_one_value(findings):
        yield f"all wrong by the factor {written(times)}"


def _of_one_value(findings: Findings) -> bool:
    """Return whether each operand that is multiplied by the gradient has one value: then any wrong formula is a mere
    factor. Along rows with a sum, a wrong sum is a mere factor too, if the gradient has one value."""
    if findings.call is None:
        return False
    op = OPERATORS[findings.call.op]
    read = (p.name for p in op.operands if p.read and p.holds("values") and p.role is not ONE_VALUE)
    floats = {n: v for n in read if isinstance(v := findings.call.inputs.get(n), np.ndarray) and v.size}
    gradient = floats.pop(op.gradient or "", None)
    if gradient is not None and op.attribute("axis") is not None and _is_one_value(gradient):
        return True
    return bool(floats) and all(map(_is_one_value, floats.values()))


def _is_one_value(array: Array) -> bool:
    """Return whether the values are so close that a smooth function of them is nearly constant."""
    wide = array.astype(np.float64)
    return bool(np.isfinite(wide).all() and np.ptp(wide) <= ALIKE * max(1.0, float(np.abs(wide).max())))


def _common_factor(findings: Findings) -> tuple[float, float]:
    """Return the factor by which all numbers except zeros are wrong, and its relative tolerance; (0, 0) if none."""
    none = 0.0, 0.0
    value, actual, bound = findings.reference.value, findings.actual.astype(np.float64), findings.reference.bound
    zero = findings.golden == 0
    where = ~zero & np.isfinite(findings.golden)
    if not where.any() or actual[zero].any() or not np.isfinite(actual[where]).all():
        return none
    form = FORMATS[findings.reference.coarser or str(findings.actual.dtype)]  # a cast to more digits adds none
    unit = 2.0 ** -(form.mant + 1)
    normal = where & (np.abs(value) > form.tiny) & (np.abs(actual) > form.tiny)
    if not normal.any() or np.mean(findings.bad[where]) < 0.5:
        return none
    times = float(np.median(actual[normal] / value[normal]))
    if not np.isfinite(times) or abs(times - 1) < 16 * unit:
        return none
    allowed = np.abs(times) * (8 * unit * np.abs(value) + bound) + form.quantum
    if np.mean((np.abs(actual - value) <= allowed)[where]) >= 0.5:
        return none  # too near to 1 to be distinguished from the errors of a right kernel
    return (times, 8 * unit) if (np.abs(actual - times * value) <= allowed)[where].all() else none


def as_a_factor(findings: Findings, text: str) -> str:
    """Return a claim about an attribute as a mere factor; "" if the results are not wrong by one factor."""
    times, _ = _common_factor(findings)
    return f"all wrong by the factor {written(times)}{BY_A_FACTOR}{text}" if times else ""


def written(factor: float) -> str:
    """Return a factor in few digits, but not as 1."""
    text = f"{factor:.6g}"
    return f"{factor:.8g}" if text == "1" else text


def _sizes(findings: Findings) -> int:
    """Return how many numbers of different magnitude there are."""
    return len(np.unique(np.abs(findings.golden[np.isfinite(findings.golden) & (findings.golden != 0)])))


# Words for a factor by which a whole output is wrong: an operand, its inverse, or a number that people write.

CONSTANTS = (math.log(2), 1 / math.log(2), math.pi, math.e, math.sqrt(2), math.sqrt(0.5), math.sqrt(2 / math.pi))


def named_factor(factor: float, near: float, call: Call | None) -> str:
    """Describe a factor that is an operand's value, its inverse or a common constant; "" for any other number."""
    for name, array in () if call is None else call.inputs.items():
        if isinstance(array, np.ndarray) and array.size == 1 and array.dtype.kind not in "iubc":
            value = float(array.reshape(()).astype(np.float64))
            ways = (
                (f"{name} is a factor too many", value),
                (f"{name} is a divisor too many", 1 / value if value else 0.0),
            )
            for text, wanted in ways:
                if wanted and abs(abs(wanted) - 1) > 4 * near and abs(abs(factor / wanted) - 1) < near:
                    return f"{text}: all wrong by the factor {written(factor)}"
    simple = Fraction(factor).limit_denominator(8)
    small = abs(abs(factor) - 1)
    binary = 0 < small < 0.1 and abs(math.log2(small) - round(math.log2(small))) < near / small
    most = 1024 if simple.denominator == 1 else 8
    round_number = bool(simple) and abs(factor / float(simple) - 1) < near and abs(simple.numerator) <= most
    if binary or round_number or any(abs(abs(factor) / constant - 1) < near for constant in CONSTANTS):
        return f"all wrong by the factor {written(factor)}"
    return ""


def wrong_divisor(factor: float, near: float, call: Call | None) -> str:
    """Describe a mean that is divided by a wrong count; "" if the factor is no quotient of two known counts."""
    if call is None:
        return ""
    op = OPERATORS[call.op]
    given = call.arguments
    is_mean = op.reduction is not None and call.attrs.get(op.reduction.name) == MEAN
    if not is_mean or not isinstance(call.inputs[op.main], np.ndarray):
        return ""
    totals = [call.inputs[p.name] for p in op.inputs(ONE_VALUE)]  # given, as the sum of weights
    if totals and isinstance(totals[0], np.ndarray):
        right = float(totals[0].reshape(()).astype(np.float64))
    elif op.class_index is not None:
        right = _weights(call, every=False)
    else:
        right = float(call.inputs[op.main].size if op.mean is None else op.mean(given))
    for count, what in _counts(call, right).items():
        if count not in (0, right) and abs(factor * count / right - 1) < near:
            divided = f"the mean is divided by {count:.6g} ({what}), not by {right:.6g}"
            return f"{divided}: all wrong by the factor {written(factor)}"
    return ""


def _weights(call: Call, *, every: bool) -> float:
    """Return the sum of the weights of the samples in a mean over class indices; ``every``: of ignored ones, too."""
    op, shape = OPERATORS[call.op], call.inputs[OPERATORS[call.op].main].shape
    classes, ignored = call.inputs[str(op.class_index)].astype(np.int64), op.attribute("ignore index")
    given = [array for p in op.inputs(PER_CLASS) if isinstance(array := call.inputs[p.name], np.ndarray)]
    weights = given[0].astype(np.float64) if given else np.ones(shape[op.class_axis(shape, call.attrs) or 0])
    taken = (classes >= 0) & (classes < weights.size)
    if ignored is not None and not every:
        taken &= classes != call.attrs[ignored.name]
    return float(weights[classes[taken]].sum())


def _counts(call: Call, right: float) -> dict[float, str]:
    """Return the wrong counts by which a mean may be divided, with all their names, the likeliest first."""
    op = OPERATORS[call.op]
    shape = call.inputs[op.main].shape
    result: dict[float, dict[str, None]] = {}
    arrays = {n: v for n, v in call.inputs.items() if isinstance(v, np.ndarray)}
    ways: list[tuple[float, str]] = [(1, "nothing")]
    ways += [(array.size, f"the size of {name}") for name, array in arrays.items()]
    if op.class_index is not None and (ignored := op.attribute("ignore index")) is not None:
        kept = int(np.count_nonzero((classes := arrays[op.class_index]) != call.attrs[ignored.name]))
        ways.insert(1 if kept < classes.size else len(ways), (kept, "the number of samples that are not ignored"))
    ways += [(math.prod(op.output_shape(call.arguments)), "the size of the output")]
    ways += [(n, f"axis {k}") for k, n in enumerate(shape)]
    ways += [(math.prod(shape[1:]), "all but the first axis"), (math.prod(shape[:-1]), "all but the last axis")]
    if right.is_integer():
        ways += [(int(right) + 1, "one too many"), (int(right) - 1, "one too few")]
    ways += [(len(shape), "the rank")]
    if op.class_index is not None:
        ways.append((_weights(call, every=True), "the weights of all samples"))
    for count, what in ways:
        result.setdefault(count, {})[what] = None
    return {count: OR.join(names) for count, names in result.items()}
