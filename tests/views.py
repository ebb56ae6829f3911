"""Views of an array of two axes or more, as a framework or a device may get them."""

from __future__ import annotations

import numpy as np

BASE = np.arange(24, dtype=np.float32).reshape(4, 6)
VIEWS = {
    "contiguous": lambda b: b,
    "row": lambda b: b[1],
    "offset": lambda b: b[..., 1:, 3:],  # to no multiple of 32 bytes, and not contiguous
    "transposed": lambda b: b.T,
    "strided": lambda b: b[..., ::2],
    "expanded": lambda b: np.broadcast_to(b[:1], b.shape),
    "expanded inside": lambda b: np.broadcast_to(b[:, :1], b.shape),
    "scalar": lambda b: b.reshape(-1)[15:16].reshape(()),
    "empty": lambda b: b[:0],
    "empty inside": lambda b: b[:, :0],
    "reshaped": lambda b: b.reshape(-1)[5:].reshape(-1, 1),
}
