"""All wrong kernels and all right ones of an operator: those that stand with it, then those that follow from it.

What was published of an operator of this package stands in ``oracle/defects/published/<slug>.py`` as ``rows``, of one
from outside in what its declaration calls ``published``: a function that yields :class:`Defect`, :class:`Right` and,
for generated mutants that no right verdict may flag, :class:`Argument`. A file of this package may also hold these as
``ARGUMENTS``, why by the mutant's id; of an operator of which nothing was published they stand in
``oracle/defects/published/equivalent.py``. Without them there is what follows from the page.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

from ..model.errors import OracleError
from ..operators import operator, validate, writes
from ..operators.definition.operator import Operator
from .base.asking import is_written
from .base.base import Argument, Defect, Right
from .base.device import nothing
from .base.pieces import Kernel
from .base.right import generated as right_of
from .meetings import combinations, pairs
from .one_change import api, checks, formula, indices, layouts, masks, numbers, numerics, refusals
from .published import equivalent
from .sizes import cores, corners, lost, tiles
from .unseen import unseen

Entry = Defect | Right | Argument
ZERO_SIGN = "right kernels answer +0 and -0 alike, so no verdict may read the sign of a zero"
GENERATORS: tuple[Callable[[Operator], Iterator[Defect]], ...] = (
    formula.mutants,
    numbers.mutants,
    indices.mutants,
    combinations.mutants,
    pairs.mutants,
    numerics.mutants,
    layouts.mutants,
    lost.mutants,
    tiles.mutants,
    cores.mutants,
    corners.mutants,
    masks.mutants,
    api.misbehaviour,
    checks.missing,
    refusals.mutants,
)


@cache
def defects(op: str) -> tuple[Defect, ...]:
    """Return the wrong kernels of an operator: the published ones, then the generated ones."""
    found = operator(op)
    entries = _published(found)
    arguments = {entry.id: entry for entry in entries if isinstance(entry, Argument)}
    zero = f"num/{found.slug}/minus zero lost"
    right = tuple(entry.kernel for entry in entries if isinstance(entry, Right))
    further = tuple(each for each in found.each[1:] if is_written(each))
    zeros = (zero, *(f"{zero} of {each.output}" for each in further))
    arguments |= {each: Argument(each, ZERO_SIGN) for each in zeros}
    generated = [d for generate in GENERATORS for d in generate(found)]
    generated += [d for each in found.each[1:] for d in _of_further(each, {d.id for d in generated})]
    wrong = [entry for entry in entries if isinstance(entry, Defect)]
    everything = [
        *wrong,
        *api.rows(found),
        *(_argued(found, d, arguments.get(d.id), right) for d in generated),
    ]
    ids = [d.id for d in everything]
    twice = sorted({i for i in ids if ids.count(i) > 1}) if len(set(ids)) < len(ids) else []
    lost = sorted(arguments.keys() - set(ids))
    for problem, names in (("ids used twice", twice), ("arguments of equivalence for no mutant", lost)):
        if names:
            raise OracleError(f"wrong kernels of {op}: {problem}: {', '.join(names)}")
    return tuple(everything)


def _argued(op: Operator, defect: Defect, argument: Argument | None, right: tuple[Kernel, ...]) -> Defect:
    """A mutant with the argument why no verdict may notice it, or on the SoCs where one must."""
    left = tuple(soc for soc in defect.socs if argument is not None and soc not in argument.socs)
    if argument is not None and left:
        return replace(defect, socs=left)
    return replace(defect, equivalent=argument.why if argument else defect.equivalent or unseen(op, defect, right))


def _of_further(op: Operator, known: set[str]) -> Iterator[Defect]:
    """Yield what may be wrong about a further output alone: what concerns a call as a whole is known already, and of
    an output that is never written no kernel computes a value."""
    for defect in (d for generate in GENERATORS for d in generate(op)):
        device = defect.device
        if device.check is validate and device.launch is writes and device.after is nothing:
            told = f"{op.output}: {defect.what}"
            if is_written(op):
                yield replace(defect, id=f"{defect.id} of {op.output}", what=told, device=device.but(output=op.output))
        elif defect.id not in known:
            yield defect


@cache
def sampled(op: str, seed: int) -> tuple[Defect, ...]:
    """Return kernels of an operator that no registry holds: wrong where three conditions meet, drawn by a seed."""
    return pairs.sampled(operator(op), seed)


@cache
def right_kernels(op: str) -> tuple[Right, ...]:
    """Return the right kernels of an operator, the plain one first."""
    found = operator(op)
    generated = (kernel for each in found.each for kernel in right_of(each))
    return (*generated, *(entry for entry in _published(found) if isinstance(entry, Right)))


@cache
def _published(op: Operator) -> tuple[Entry, ...]:
    """What stands with an operator: defects, right kernels, arguments."""
    if op.published is not None:
        return tuple(op.published())
    if not op.is_built_in:
        return ()
    place = f"oracle.defects.published.{op.slug}"
    if find_spec(place) is None:
        return tuple(equivalent.arguments(op))
    module = importlib.import_module(place)
    rows: Callable[[], Iterable[Entry]] = getattr(module, "rows", tuple)
    arguments: Mapping[str, str] = getattr(module, "ARGUMENTS", {})
    return (*rows(), *(Argument(name, why) for name, why in arguments.items()))
