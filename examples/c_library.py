"""A shared object with a C function per operator, through ctypes: compiled by gcc when it is loaded.

apt-get install gcc
PYTHONPATH=examples aclnn-oracle run --backend c_library:Library --tier smoke -k first_look
"""

import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from oracle.adapter import Takes, store

TAKES = Takes("c_library", operators=("aclnnLogSigmoidBackward", "aclnnSoftmaxBackward"), dtypes=("float32",))


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


class Library:
    name = "c_library"
    device = "cpu"

    def __init__(self):
        source, self.folder = Path(__file__).with_suffix(".c"), tempfile.TemporaryDirectory()
        built = Path(self.folder.name) / "libkernels.so"
        command = ["gcc", "-O2", "-fno-fast-math", "-shared", "-fPIC", "-o", built, source, "-lm"]
        subprocess.run(command, check=True)
        self.library = ctypes.CDLL(str(built))
        self.versions = {"gcc": subprocess.check_output(["gcc", "-dumpfullversion"], text=True).strip()}

    def unsupported(self, call):
        return TAKES.reason(call)

    def run(self, call):
        if call.op == "aclnnSoftmaxBackward":
            store(call, self.softmax(call.inputs["gradOutput"], call.inputs["output"], call.attrs["dim"]))
            return
        g, x = (np.ascontiguousarray(call.inputs[name]) for name in ("gradOutput", "self"))
        result = np.empty_like(x)
        self.library.log_sigmoid_backward(pointer(g), pointer(x), pointer(result), ctypes.c_int64(x.size))
        store(call, result.reshape(call.inputs["self"].shape))

    def softmax(self, g, y, dim):
        """Move the reduced axis to the end, as the function needs it, and back."""
        given = y.shape
        g, y = (np.ascontiguousarray(np.moveaxis(np.atleast_1d(a), dim, -1)) for a in (g, y))
        result, columns = np.empty_like(y), y.shape[-1]
        rows = ctypes.c_int64(y.size // columns)
        self.library.softmax_backward(pointer(g), pointer(y), pointer(result), rows, ctypes.c_int64(columns))
        return np.moveaxis(result, -1, dim).reshape(given)
