"""Causes of a failure: a claim, made only if a simulation of the fault gives the device's results.

A claim is a sentence of one of the families below. ``aclnn-oracle power --diagnosis`` scores the claims on kernels with
known faults. Every rule compares the whole output, so a rule that fits only the bad elements claims nothing. Operands
are read again as a wrong device would read them, and their golden is computed. Values are rounded again as a wrong
store would round them. A factor, a sign or a permutation must hold to within a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from ..defects.one_change.layouts import offset_of
from ..model.dtypes import FORMATS, find
from ..numerics.expressions import CHOOSING
from ..numerics.floats.rounding import round_to
from ..numerics.traversal import walk
from ..operators import OPERATORS
from ..standards.base import ulps
from .comparisons import boundary_comparison
from .computations import computation, computed_in, errors_as_in, reduced_otherwise
from .findings import LARGEST, NEAR, Findings, is_of_values, near, spreads
from .formulas import wrong_step
from .scaled import any_factor, as_a_factor, factor, negated, some_negated
from .simulations import EITHER, ENOUGH, Explanation, of_another_output, read_as_other_values, read_elsewhere

KEPT = "the output's old content is part of the result: it is added to or scaled, not written anew"
STRAYED = "the right values in the wrong places: strides or offsets are not honoured"
NOTHING = "zero is returned for every element"
MOST = 0.98  # share of elements that a rounding must explain: a right kernel's float32 errors flip some roundings
SIGNIFICAND = (1 << 23) - 1  # the bits of a float32 without sign and exponent
SHIFTS = 64  # distances that are tried if a value occurs in several places

# Words that identify the family of a recorded cause: every sentence of a family contains one of them.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "formula": ("of the formula",),  # first: the other words can be those of the step
    "layout": ("read as if", "written as if", "strides", "wrong places", "take part"),
    "outside": ("is overwritten",),
    "lost": ("not written", "is lost", "nothing at all is written"),
    "type": ("bits taken for",),
    "factor": ("factor", "element count"),  # before the index: a divisor may count the samples that are not ignored
    "index": ("ignored",),
    "attribute": ("the attribute",),
    "optional": ("absent",),
    "sign": ("sign",),
    "clamp": ("clamp",),
    "comparison": ("a comparison",),
    "zero": ("zero is returned",),
    "other array": ("another array", "no array", "has the results of"),
    "rounding": ("rounded", "digits"),
    "flush": ("flushed",),
    "special": ("NaN", "infinit", "saturates", "overflows"),
    "check": ("check", "refuses", "accepts"),
    "changed input": ("written to",),
    "state": ("state across calls", "a race"),
}

VAGUE = ("", "clamp")  # families that a wrong step of the formula replaces: it predicts every number


def family_of(cause: str) -> str:
    """Return the family of a cause; "" if it has none."""
    return next((name for name, words in FAMILIES.items() if any(word in cause for word in words)), "")


def cause_of_values(findings: Findings, *, steps: bool = False) -> str:
    """Return the cause of an output's wrong values, or "". ``steps``: look for a wrong step of the formula, too."""
    if not findings.bad.any() or findings.actual.dtype.kind == "c" or find(findings.actual.dtype) is None:
        return ""
    if findings.actual.shape != findings.golden.shape or findings.actual.dtype != findings.golden.dtype:
        return ""
    call = findings.call
    if call is not None and OPERATORS[call.op].ends_early(call.arguments):  # an empty input: nothing is computed
        return ""
    with np.errstate(all="ignore"):
        return _cause(findings, steps)


def _cause(findings: Findings, steps: bool) -> str:
    """Return a certain cause, else a proved claim of simulations and values; "" if claims of several families fit."""
    for rule in _CERTAIN:
        for cause in rule(findings):
            return cause
    simulated = [*of_another_output(findings), *read_elsewhere(findings), *read_as_other_values(findings)]
    simulated += computed_in(findings)
    simulated += [] if any(each.sure for each in simulated) else reduced_otherwise(findings)
    claims = [(_claim_text(findings, text), text.proof) for text in _joined(simulated)]
    if findings.bad.all() and not np.isfinite(findings.before) and not np.isfinite(findings.actual).any():
        claims.append((KEPT, False))  # all values that are not finite may be the output's old content
    if not any(text.sure for text in simulated):
        text = next((cause for rule in _RULES for cause in rule(findings)), "")
        if steps and not simulated and family_of(text) in VAGUE:
            text = next(wrong_step(findings), text)
        claims += [(text, text != NOTHING or not _in_rows_of_one(findings))] if text else []
    alone = len({family_of(cause) for cause, _ in claims}) == 1 and not _are_rivals(simulated)
    return next((cause for cause, proof in claims if proof), "") if alone else ""


def _are_rivals(simulated: Sequence[Explanation]) -> bool:
    """Return whether claims about several attributes fit: where alpha is 0, other attributes matter no more."""
    return len({each.of for each in simulated if each.of.startswith("the attribute")}) > 1


def _joined(simulated: Sequence[Explanation]) -> Iterator[Explanation]:
    """Join the same claim about several operands into one claim: about one operand or the other."""
    for text in dict.fromkeys(each.text for each in simulated):
        same = [each for each in simulated if each.text == text]
        names = EITHER.join(dict.fromkeys(each.of for each in same))
        yield Explanation(names, text, any(each.sure for each in same), any(each.proof for each in same))


def _claim_text(findings: Findings, text: Explanation) -> str:
    """Return the claim as text. A claim about an attribute becomes one about a factor if that is its only effect."""
    return as_a_factor(findings, text.cause) or text.cause if family_of(text.cause) == "attribute" else text.cause


# ---- memory ----------------------------------------------------------------------------------------------------------


def _kept(findings: Findings) -> Iterator[str]:
    """Claim that the old content is added: right values plus it, or mostly NaN and infinity where it was not finite."""
    before, dtype = findings.before, str(findings.actual.dtype)
    if before == 0 or dtype not in FORMATS or not np.isfinite(findings.golden).all():
        return
    if np.isfinite(before):
        added = round_to(findings.reference.value + before, dtype)
        changed = ~near(added, findings.golden, 2 * NEAR)
        fits = bool(near(findings.actual, added).all() and changed[findings.bad].all())
    else:  # NaN may also come from the memory next to an operand
        zeros = findings.golden == 0
        most = np.mean(findings.bad) > 0.5 or (zeros.any() and np.array_equal(findings.bad, zeros))
        fits = bool(most and not np.isfinite(findings.actual[findings.bad]).any() and _special_inputs(findings))
    if fits:
        yield KEPT


# ---- places ---------------------------------------------------------------------------------------------------------


def _permuted(findings: Findings) -> Iterator[str]:
    """Claim that the right values are in other places: far from their own, but equal after sorting."""
    a, g = findings.actual, findings.golden
    if a.size > 1 << 20 or np.count_nonzero(findings.bad) < 2 or not np.isfinite(g).all() or not np.isfinite(a).all():
        return
    far = ~near(a, g, 64 * NEAR)
    if not (far & findings.bad).any() or np.count_nonzero(far) * 2 < np.count_nonzero(findings.bad):
        return
    if len(np.unique(g[findings.bad])) < ENOUGH:  # two numbers may be exchanged by chance
        return
    if a.ndim > 1 and a.shape[-1] > 1 and near(a.reshape(-1), np.swapaxes(g, -1, -2).reshape(-1)).all():
        yield "elements are in transposed order: strides are not honoured"
    if near(np.sort(a, axis=None), np.sort(g, axis=None)).all():
        yield STRAYED if _has_views(findings) else "the right values in the wrong places: an index is wrong"


def _has_views(findings: Findings) -> bool:
    """Return whether a tensor has strides or an offset that a device may ignore."""
    call = findings.call
    if call is None:
        return True
    tensors = {n: v for n, v in {**call.inputs, **call.outputs}.items() if isinstance(v, np.ndarray)}
    return any(not v.flags.c_contiguous or bool(offset_of(call, n)) for n, v in tensors.items())


# ---- class indices ---------------------------------------------------------------------------------------------------


def _ignored_offsets(findings: Findings) -> Iterator[str]:
    """Claim that zeros lie where the ignored index, read as a class, points: in other rows or outside the tensor."""
    call = findings.call
    if call is None:
        return
    op = OPERATORS[call.op]
    ignore = op.attribute("ignore index")
    classes = None if op.class_index is None else call.inputs.get(op.class_index)
    if ignore is None or not isinstance(classes, np.ndarray):
        return
    ignored, count = call.attrs.get(ignore.name), findings.actual.shape[-1] if findings.actual.ndim else 1
    rows = np.flatnonzero(classes.reshape(-1) == ignored)
    if not rows.size or not isinstance(ignored, int) or 0 <= ignored < count or findings.actual.ndim > 2:
        return
    places = rows * count + ignored
    places = places[(places >= 0) & (places < findings.actual.size)]
    wrong = np.flatnonzero(findings.bad.reshape(-1))
    if np.isin(wrong, places).all() and not findings.actual.reshape(-1)[wrong].any():
        yield f"zero is written at row * {count} + {ignore.name} of ignored rows: other gradients are lost"


def _ignored_rows(findings: Findings) -> Iterator[str]:
    if findings.places.startswith("ignored rows"):
        yield "rows that are to be ignored are not zero: the ignored index is not honoured"


# ---- rounding --------------------------------------------------------------------------------------------------------


def _stores(findings: Findings) -> Iterator[str]:
    """Claim that nearly every element is the value with another rounding than to nearest."""
    dtype = str(findings.actual.dtype)
    if dtype not in ("float16", "bfloat16") or findings.bad.size < 8 or not _errors_below(findings, 2.0**-6):
        return
    actual, value = findings.actual.astype(np.float64), findings.reference.value
    nearest = round_to(value, dtype).astype(np.float64)
    step = ulps(nearest, FORMATS[dtype])
    toward = np.where(np.abs(nearest) > np.abs(value), nearest - np.copysign(step, value), nearest)
    up = np.where(nearest < value, nearest + step, nearest)
    tie = np.abs(np.abs(value - nearest) - step / 2) == 0
    away = nearest + np.where(np.abs(nearest) < np.abs(value), np.copysign(step, value), 0.0)
    if tie[findings.bad].all() and (actual == away)[tie].all():  # another error decides some ties, but not all
        yield f"ties are rounded away from zero when results are stored as {dtype}, not to even"
    for text, rounded in (("toward zero", toward), ("upwards", up)):
        differs = rounded != nearest
        if differs.any() and np.mean(actual == rounded) >= MOST and np.mean(actual[differs] == rounded[differs]) > 0.9:
            yield f"results are rounded {text} when they are stored as {dtype}: digits are cut, not rounded to nearest"


def _unrounded(findings: Findings) -> Iterator[str]:
    """Claim that the device omits the host's rounding to the operands' dtype before the cast to the output's."""
    kind = findings.reference.coarser
    if kind in ("", str(findings.actual.dtype)):
        return
    rounded = round_to(findings.actual.astype(np.float64), kind)
    same = near(rounded, findings.golden.astype(rounded.dtype), 1)
    left = rounded.astype(np.float64) != findings.actual.astype(np.float64)
    if same.mean() >= MOST and left[findings.bad].mean() >= MOST:
        yield f"results are not rounded to {kind}, the host's type, before the cast to the output's"


def _narrow(findings: Findings) -> Iterator[str]:
    """Claim that float32 results have only the digits of a 16-bit dtype."""
    if findings.actual.dtype != np.float32 or not _errors_below(findings, 2.0**-6):
        return
    good = np.isfinite(findings.actual) & (findings.actual != 0)
    if np.count_nonzero(good) < 2 or np.mean(findings.bad[good]) < 0.5:
        return
    bits = findings.actual[good].view(np.uint32)
    if len(np.unique(bits & np.uint32(SIGNIFICAND))) < ENOUGH:  # 1 / 1024 for 1 / 1030 has few digits with a wrong sum
        return
    exact = findings.golden[good].view(np.uint32)
    for name, cut in (("bfloat16", 16), ("float16", 13)):
        mask = np.uint32((1 << cut) - 1)
        if not (bits & mask).any() and np.mean((exact & mask) != 0) > 0.5:
            yield f"float32 results carry only the digits of {name}: they are rounded to it on the way"


def _through(findings: Findings) -> Iterator[str]:
    """Claim that 16-bit results are first rounded to the other 16-bit dtype, which has fewer digits or a smaller
    range."""
    dtype = str(findings.actual.dtype)
    between = {"float16": "bfloat16", "bfloat16": "float16"}.get(dtype)
    if between is None or np.count_nonzero(findings.bad) < 2 or not findings.actual[findings.bad].any():
        return
    stored = round_to(round_to(findings.reference.value, between).astype(np.float64), dtype)
    if np.mean(near(findings.actual, stored, 0)) >= MOST and not near(stored, findings.golden, 0)[findings.bad].any():
        less = "carry only the digits" if between == "bfloat16" else "have only the range"
        yield f"{dtype} results {less} of {between}: they are rounded to it on the way"


def _errors_below(findings: Findings, limit: float) -> bool:
    """Return whether every bad element's error is below a share of its value; near zero, of the largest value."""
    g, a = findings.golden[findings.bad].astype(np.float64), findings.actual[findings.bad].astype(np.float64)
    every = np.abs(findings.golden.astype(np.float64))
    largest = float(np.max(every, where=np.isfinite(every), initial=0.0))
    return bool((np.abs(a - g) <= limit * np.abs(g) + 2.0**-24 * min(1.0, largest)).all())


# ---- signs, factors, zeros, specials ---------------------------------------------------------------------------------


def _clamp(findings: Findings) -> Iterator[str]:
    """Claim that a divisor is clamped wrongly: some elements are wrong by one large factor, others by less. Elsewhere
    than in a formula of elements with a maximum or minimum, that has other causes."""
    found = None if findings.call is None else computation(findings, LARGEST)
    if findings.call is not None and not (found and any(n.op in CHOOSING for g in found.graphs for n in walk(g))):
        return
    g, a = findings.golden[findings.bad].astype(np.float64), findings.actual[findings.bad].astype(np.float64)
    if g.size < 4 or findings.bad.all() or not (np.isfinite(g) & np.isfinite(a) & (g != 0) & (a / g > 0)).all():
        return
    ratios = np.log(a / g)
    if not ((ratios < 0).all() or (ratios > 0).all()):
        return
    size = np.abs(ratios)
    at_end = size > size.max() - 2.0**-6
    if size.max() > math.log(10) and np.count_nonzero(at_end) >= 2 and len(np.unique(np.abs(g[at_end]))) > 1:
        factor = float(np.exp(np.median(ratios[at_end])))
        yield f"a clamp at another constant: some elements are wrong by one factor, {factor:.3g}, others by less"


def _zeros(findings: Findings) -> Iterator[str]:
    g, a = findings.golden[findings.bad].astype(np.float64), findings.actual[findings.bad]
    if a.any() or np.isnan(a).any() or not g.all() or not np.isfinite(g).any():
        return
    everywhere = np.abs(findings.golden.astype(np.float64))
    for kind in dict.fromkeys((str(findings.actual.dtype), "float32")):
        small = FORMATS[kind].tiny
        flushed = (np.abs(g) < small).all() and not findings.actual[(everywhere > 0) & (everywhere < small)].any()
        if flushed and (kind == "float32" or len(np.unique(np.abs(g))) >= ENOUGH):
            yield f"results below the smallest normal {kind} are flushed to zero"
            return
    if (np.abs(g) < FORMATS["float32"].tiny).all():
        return
    if findings.bad.size > 1 and not findings.actual.any():
        tiny = "zero for every element: the subnormal numbers of an operand are flushed to zero"
        yield tiny if _tiny_operand(findings) else NOTHING
    elif (_is_share(findings.places) or _is_box(findings)) and not _may_be_of_operands(findings):
        yield f"zero where {findings.places}: a share of the work is lost"


def _in_rows_of_one(findings: Findings) -> bool:
    """Return whether each sum has one term: if a result is the term minus the sum, many wrong formulas give 0."""
    axis = None if findings.call is None else OPERATORS[findings.call.op].attribute("axis")
    if findings.call is None or axis is None or not findings.actual.ndim:
        return False
    return bool(findings.actual.shape[findings.call.attrs[axis.name]] == 1)


def _stale(findings: Findings) -> Iterator[str]:
    """Claim that some elements have the right values of elements a fixed distance before them."""
    g, a = findings.golden.reshape(-1), findings.actual.reshape(-1)
    where = np.flatnonzero(findings.bad)
    if 2 * where.size > a.size or where.size < 2 or len(np.unique(a[where])) < 2 or not np.isfinite(a[where]).all():
        return
    before = g[: where[0]]
    for distance in where[0] - np.flatnonzero(before == a[where[0]])[::-1][:SHIFTS]:
        if near(a[where], g[where - distance], 1).all():
            text = f"elements have the results of the elements {distance} places before them"
            yield f"{text}: a share of the work is lost ({findings.places})"
            return


def _tiny_operand(findings: Findings) -> bool:
    """Return whether all numbers of an operand are below the normal range of its dtype, or of float16."""
    for array in findings.inputs.values():
        if str(array.dtype) in FORMATS and array.size:
            largest = float(np.max(np.abs(array.astype(np.float64))))
            if 0 < largest < max(FORMATS[str(array.dtype)].tiny, FORMATS["float16"].tiny):
                return True
    return False


def _is_box(findings: Findings) -> bool:
    """Return whether the bad elements are many, and are all nonzero elements in a box of indices."""
    if np.count_nonzero(findings.bad) < 16:  # a scalar has at most one bad element
        return False
    where = np.nonzero(findings.bad)
    box = tuple(slice(int(i.min()), int(i.max()) + 1) for i in where)
    inside = np.zeros(findings.bad.shape, bool)
    inside[box] = True
    return not inside.all() and bool((findings.bad == (inside & (findings.golden != 0))).all())


def _may_be_of_operands(findings: Findings) -> bool:
    """Return whether operands may cause a pattern: by their values, which the right results show as well, or by a wrong
    reading of a view."""
    if is_of_values(findings.golden, findings.bad) or _are_of_pairs(findings):
        return True
    arrays = findings.inputs.values()
    if any(not array.flags.c_contiguous or is_of_values(array, findings.bad) for array in arrays):
        return True
    found = computation(findings, LARGEST)  # its operands are parts: the gate of Glu
    parts = () if found is None else found.operands.values()
    return any(isinstance(part, np.ndarray) and is_of_values(part, findings.bad) for part in parts)


def _are_of_pairs(findings: Findings) -> bool:
    """Return whether few pairs of values of two operands are wrong, and wrong wherever they stand: values that repeat
    in cycles look like lanes."""
    bad = findings.bad
    given = [v for v in findings.inputs.values() if spreads(v.shape, bad.shape) and v.dtype.kind != "c"]
    for pair in combinations(given, 2):
        rows = np.stack([np.broadcast_to(v, bad.shape).astype(np.float64).reshape(-1) for v in pair], axis=1)
        numbers = np.unique(rows, axis=0, return_inverse=True)[1].reshape(bad.shape)
        wrong = np.unique(numbers[bad])
        if 2 * wrong.size <= np.count_nonzero(bad) and not np.isin(numbers[~bad], wrong).any():
            return True
    return False


def _is_share(places: str) -> bool:
    """Return whether a lost tile, core or lane leaves such a pattern."""
    shares = ("tail", "every", "one lane", "one contiguous block", "whole rows")
    return places.startswith(shares) or " of every " in places


def _specials(findings: Findings) -> Iterator[str]:
    g, a = findings.golden[findings.bad], findings.actual[findings.bad]
    share = _is_share(findings.places)
    if np.isnan(g).all() and not np.isnan(a).any() and (np.abs(a) == np.abs(a[0])).all():  # one size, as stores give
        yield "NaN is replaced by a number"
    if np.isinf(g).all() and np.isfinite(a).all() and (np.abs(a) == np.abs(a).max()).all() and a.any():
        yield "overflow saturates instead of giving infinity"
    others = np.isfinite(findings.golden) & (findings.golden != 0) & ~findings.bad
    if np.isinf(g).all() and not a.any() and others.any():
        yield "infinities are replaced by zero"
    if np.isinf(g).all() and (a == -g).all():
        yield "an infinity has the wrong sign"
    if np.isnan(a).all() and np.isinf(g).all():
        yield "NaN where an infinity is due: inf - inf, inf / inf or 0 * inf in an intermediate"
    lost = share and np.isfinite(g).all() and not _may_be_of_operands(findings) and _all_finite(findings)
    if np.isnan(a).all() and lost:
        yield f"NaN where {findings.places}: a share of the work is lost"
    if np.isnan(a).all() and np.isfinite(g).all():
        if carried := _nan_operand(findings):
            yield f"a NaN of {carried} is passed on where a number is due"
        elif not share and _special_inputs(findings):
            yield "NaN where a number is due: 0 / 0, inf / inf, inf - inf or 0 * inf, or memory next to an operand"
    if np.isinf(a).all() and lost:
        yield f"infinite where {findings.places}: a share of the work is lost"
    if np.isinf(a).all() and np.isfinite(g).all() and not np.isinf(findings.golden).any() and _special_inputs(findings):
        yield "an intermediate overflows, or becomes 0 before a division or a logarithm"


def _nan_operand(findings: Findings) -> str:
    """Return the operand that is NaN at every wrong element; "" if there is none."""
    for name, array in findings.inputs.items():
        is_float = str(array.dtype) in FORMATS and spreads(array.shape, findings.bad.shape)
        if is_float and np.isnan(np.broadcast_to(array, findings.bad.shape)[findings.bad].astype(np.float64)).all():
            return name
    return ""


def _all_finite(findings: Findings) -> bool:
    """Return whether no operand holds a NaN or an infinity, which a device could carry from one row into others."""
    floats = (array for array in findings.inputs.values() if str(array.dtype) in FORMATS)
    return all(bool(np.isfinite(array).all()) for array in floats)


def _special_inputs(findings: Findings) -> bool:
    """Return whether only the numbers can cause NaN: the device cannot have read memory next to an operand (NaN here),
    as it would for a class outside the range."""
    call = findings.call
    if call is None:
        return True
    if OPERATORS[call.op].class_index is not None:
        return False
    arrays = findings.inputs.items()
    return all(array.flags.c_contiguous and not offset_of(call, name) for name, array in arrays)


_CERTAIN: tuple[Callable[[Findings], Iterator[str]], ...] = (
    _kept, _unrounded, _through, _stores, _ignored_offsets, _ignored_rows, negated, boundary_comparison,
)  # fmt: skip
_RULES: tuple[Callable[[Findings], Iterator[str]], ...] = (
    factor, some_negated, _clamp, _specials, _zeros, _permuted,
    _stale, _narrow, errors_as_in, any_factor,
)  # fmt: skip
