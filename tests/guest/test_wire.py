"""The memory that a run shares with its device's process."""

from __future__ import annotations

import os

import numpy as np

from oracle.guest.wire import Shared, as_arrays, mapped
from oracle.model.call import Call


def test_every_array_has_an_address_of_its_own():
    """Adapters identify a storage by its address, also one without elements."""
    empty, out = np.zeros(0, np.float32), np.zeros((2, 3), np.float32)
    call = Call("aclnnLogSigmoidBackward", "ascend910b", {"buffer": empty, "self": empty}, {}, {"gradInput": out})
    shared = Shared(call)
    memory = mapped(os.dup(shared.descriptor))
    arrays = [*as_arrays(shared.inputs, memory).values(), *as_arrays(shared.outputs, memory).values()]
    assert len({array.base.ctypes.data for array in arrays}) == 3
    shared.close()
