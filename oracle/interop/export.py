"""Our goldens as a ``golden.py`` for others: ``__golden__`` and ``__spec__`` in ops-test-kit's forms.

The file is plain Python that calls :func:`oracle.golden`; whoever uses it needs this package and nothing else of ours.
A kernel's golden takes NumPy arrays in the kernel's order and attributes by the kernel's names; an aclnn one takes
torch tensors in aclnn's order and attributes by aclnn's names, and returns a list. Both ignore whatever else comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..operators.definition.operator import Operator
from ..operators.definition.parameters import Parameter

HEAD = '''\
"""Correctly rounded goldens for TTK and ATK, written by `aclnn-oracle export-golden`. Needs: pip install aclnn-oracle.

Kernels: NumPy arrays in the kernel's order (bfloat16 as ml_dtypes has it), NumPy out. aclnn: torch tensors in, a list
of torch tensors out. Every result is the value of the output type nearest to the exact one.
"""

import numpy as np

import oracle


def _attribute(value, words=()):
    """A kernel's attribute as aclnn takes it: one of its words as a number, a list of one as the one."""
    if isinstance(value, (list, tuple)):
        (value,) = value
    return words.index(value) if isinstance(value, str) and value in words else value


def _golden(op, outputs, given, params):
    """The goldens of a call's outputs, of the dtypes that the tool says, where it says some. An output that the host
    leaves as it is has none: a zero."""
    params |= zip(outputs, map(str, given.get("output_dtypes") or ()))
    found = oracle.golden(op, **params)
    nothing = np.zeros(1, next(iter(found.values())).dtype)
    return [found.get(name, nothing) for name in outputs]


def _numpy(tensor):
    if tensor is None:
        return None
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        import ml_dtypes
        import torch

        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def _torch(array):
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(np.array(array).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def _aclnn(op, outputs, tensors, given, attributes):
    params = {name: _numpy(tensor) for name, tensor in tensors.items()}
    params |= {name: given[name] for name in attributes if name in given}
    return [_torch(golden) for golden in _golden(op, outputs, given, params)]
'''


def golden_py(operators: Iterable[Operator], added: Iterable[str] = ()) -> str:
    """Return the file. Of several operators with one kernel the one of the shortest name has the kernel's golden; aclnn
    has them all. ``added``: operators from outside, as ``module:NAME``, which the file makes known."""
    kernels: dict[str, Operator] = {}
    every = list(operators)
    for op in every:
        if op.kernel is not None:
            first = kernels.setdefault(op.kernel.name, op)
            if len(op.name) < len(first.name):
                kernels[op.kernel.name] = op
    parts = [HEAD, *_known(added), *map(_kernel, kernels.values()), *map(_aclnn, every), _tables(kernels, every)]
    return "\n\n".join(parts)


def _known(added: Iterable[str]) -> Iterator[str]:
    if lines := [f'OPERATORS.add("{text}")\n' for text in added]:
        yield "from oracle.operators import OPERATORS  # noqa: E402\n\n" + "".join(lines)


def _kernel(op: Operator) -> str:
    assert op.kernel is not None
    named = op.kernel.attributes
    attributes = ", ".join(f"{name}={default!r}" for name, (_aclnn_name, default) in named.items())
    optional = {name for name in op.kernel.inputs if op.by_name[name].optional}
    inputs = [f"{name}=None" if name in optional else name for name in op.kernel.inputs]
    values = {name: name for name in op.kernel.inputs}
    values |= {aclnn: _given(op.by_name[aclnn], name) for name, (aclnn, _default) in named.items()}
    values |= {p.name: repr(p.plain) for p in _attributes(op) if p.name not in values and p.plain is not None}
    # what aclnn takes and the kernel does not is never read: any tensor of the right shape will do
    values |= {name: op.main for name in op.names("input") if name not in values and not op.by_name[name].optional}
    signature = ", ".join([*inputs, *(["*", attributes] if attributes else []), "**given"])
    return f"""\
def {op.kernel.name}({signature}):
    return _golden("{op.name}", {op.outputs!r}, given, {_dict(values)}){"[0]" if len(op.outputs) == 1 else ""}
"""


def _given(parameter: Parameter, name: str) -> str:
    words = f", {tuple(parameter.words)!r}" if parameter.words and parameter.c == "int64" else ""
    return f"_attribute({name}{words})"


def _attributes(op: Operator) -> list[Parameter]:
    return [p for p in op.parameters if p.kind == "attr"]


def _aclnn(op: Operator) -> str:
    inputs = op.names("input")
    optional = {name for name in inputs if op.by_name[name].optional}
    signature = ", ".join([*(f"{n}=None" if n in optional else n for n in inputs), "**given"])
    attributes = tuple(p.name for p in _attributes(op))
    return f"""\
class {class_of(op)}:
    @staticmethod
    def golden({signature}):
        return _aclnn("{op.name}", {op.outputs!r}, {_dict({n: n for n in inputs})}, given, {attributes!r})
"""


def class_of(op: Operator) -> str:
    return f"{op.name[0].upper()}{op.name[1:]}Spec"


def _dict(values: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in values.items()) + "}"


def _tables(kernels: dict[str, Operator], every: Sequence[Operator]) -> str:
    golden = "".join(f'        "{name}": "{name}",\n' for name in kernels)
    spec = "".join(f'    "{op.name}": "{class_of(op)}",\n' for op in every)
    return f'__golden__ = {{\n    "kernel": {{\n{golden}    }},\n}}\n__spec__ = {{\n{spec}}}\n'
