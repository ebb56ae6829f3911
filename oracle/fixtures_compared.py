"""A stored fixture beside the computed one: whether they are the same, and if not, where they differ."""

from __future__ import annotations

import numpy as np

from .model import npy
from .model.call import Array
from .model.dtypes import DTYPES
from .model.errors import OracleError
from .numerics.rounding import unify_nans


def same_array(stored: bytes, computed: bytes, name: str) -> bool:
    """Whether two ``.npy`` files hold the same array bit for bit; NumPy versions may pad the header differently."""
    if not name.endswith(".npy"):
        return False
    a, b = _load(stored), _load(computed)
    if a is None or b is None or a.dtype != b.dtype or a.shape != b.shape:
        return False
    return a.tobytes() == b.tobytes() or (name.startswith("golden_") and _one_nan(a, name) == _one_nan(b, name))


def _one_nan(array: Array, name: str) -> bytes:
    """The bytes of a golden whose NaNs have all the same bits: version 0.1 left them to the machine."""
    values = np.array(array, order="C").view(DTYPES[name.removesuffix(".npy").rpartition("__")[2]].numpy)
    unify_nans(values.view(values.real.dtype))  # of a complex one, both parts
    return values.tobytes()


def _load(content: bytes) -> Array | None:
    try:
        return npy.loads(content, "")
    except OracleError:
        return None


def difference(stored: bytes, computed: bytes, name: str) -> str:
    """Say how a stored file differs from the computed one."""
    if stored == computed:
        return "the content is the recomputed one"
    if not name.endswith(".npy"):
        if len(stored) != len(computed):
            return f"{len(stored)} bytes stored, {len(computed)} computed"
        differing = np.frombuffer(stored, np.uint8) != np.frombuffer(computed, np.uint8)
        return f"{int(differing.sum())} of {len(stored)} bytes differ, the first at byte {int(differing.argmax())}"
    a, b = _load(stored), _load(computed)
    if a is None or b is None:
        return "not a readable .npy file"
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype} {list(a.shape)} stored, {b.dtype} {list(b.shape)} computed"
    bits = f"V{a.itemsize}"
    bad = np.flatnonzero(np.ravel(a).view(bits) != np.ravel(b).view(bits)) if a.size else np.empty(0, int)
    if not bad.size:
        return "the same values in another form"
    first = np.unravel_index(bad[0], a.shape) if a.ndim else ()
    where = [int(i) for i in first]
    return f"{bad.size} of {a.size} elements differ, the first at {where}: {a[first]} stored, {b[first]} computed"
