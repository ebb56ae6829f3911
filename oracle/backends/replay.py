"""Outputs recorded elsewhere with ``--record-outputs DIR``, judged here: ``--backend-option path=DIR``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..model.call import Call
from ..model.errors import OracleError
from ..model.status import Status
from .recorded import inputs_digest, load_output, read_index


class Backend:
    """A recording. Calls it does not hold are skipped; one of another SoC or of other inputs is refused.

    Status, error, values, dtypes and shapes travel; what the device did to memory around them was seen where it ran.
    """

    name = "replay"
    answers_status = True
    recorded = True  # another run answers the same: it tells nothing

    def __init__(self, *, path: str) -> None:
        self.folder = Path(path)
        self.index = read_index(self.folder)

    def unsupported(self, call: Call) -> str | None:
        return None if call.case_id in self.index else f"not in the recording {self.folder}"

    def run(self, call: Call) -> Status | None:
        """Answer what was recorded."""
        entry = self.index[call.case_id]
        if entry["soc"] != call.soc:
            raise OracleError(f"{self.folder}: recorded for --soc {entry['soc']}, judged for {call.soc}")
        if entry["inputs"] != inputs_digest(call):
            raise OracleError(f"{self.folder}: recorded with other inputs: another --seed, catalogue or version")
        if entry["error"]:
            raise RuntimeError(f"recorded: {entry['error']}")
        for name, told in entry["outputs"].items():
            recorded, given = load_output(self.folder, told), call.outputs.get(name)
            if isinstance(given, np.ndarray) and (given.shape, given.dtype) == (recorded.shape, recorded.dtype):
                given[...] = recorded
            else:
                call.outputs[name] = recorded
        return Status(entry["status"], entry["reason"])
