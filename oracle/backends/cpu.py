"""The oracle itself as a device: the results of a right device of the SoC, or of a poor one.

numerics=exact    the golden
numerics=kernel   the SoC's public kernel: float32 internals in its own order, one rounding to the result (default)
numerics=native   the same with every intermediate rounded to the input type
"""

from __future__ import annotations

from ..model.aclnn import Status
from ..model.call import Call
from ..model.errors import unknown
from ..operators import compute, validate, written
from ..operators.answers.api import NUMERICS
from ..operators.answers.parts import parts


class Backend:
    """The CPU oracle."""

    name = "cpu"
    answers_status = True
    device = "cpu"

    def __init__(self, *, numerics: str = "kernel") -> None:
        if numerics not in NUMERICS:
            raise unknown("numerics", numerics, NUMERICS)
        self.numerics = numerics

    def run(self, call: Call) -> Status | None:
        """Validate as GetWorkspaceSize does, then compute."""
        status = validate(call)
        if status.ok and call.has_data and (names := written(call)):
            for part in parts(call):  # in parts: a float32 result of the whole would be twice the output
                for name in names:
                    part.outputs[name][...] = compute(part, numerics=self.numerics, output=name)  # type: ignore[arg-type]
        return status
