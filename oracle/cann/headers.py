"""C headers of the operators that the emulated CANN serves; C and C++ programs include them."""

from __future__ import annotations

import textwrap
from pathlib import Path, PurePosixPath

from ..emulator import served
from ..operators import OPERATORS
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import Parameter

_TYPES = {
    "int64": "int64_t",
    "aclScalar": "const aclScalar*",
    "float": "float",
    "double": "double",
    "bool": "bool",
    "char*": "char*",
    "aclIntArray": "const aclIntArray*",
    "aclBoolArray": "const aclBoolArray*",
}
_HEADER = """\
#ifndef {guard}
#define {guard}

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {{
#endif

{functions}

#ifdef __cplusplus
}}
#endif

#endif
"""
_DECLARED = """\
ACL_FUNC_VISIBILITY aclnnStatus {name}GetWorkspaceSize(
{parameters});
ACL_FUNC_VISIBILITY aclnnStatus {name}(
    void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, aclrtStream stream);"""


def add_headers(tree: Path) -> None:
    """Write the headers that a built toolkit tree lacks into ``include/aclnnop``."""
    for name, text in headers().items():
        path = tree / "include" / "aclnnop" / name
        if not path.exists():
            path.write_text(text, "utf-8")
            path.chmod(0o644)  # only the owner may write into a tree that programs are built from


def headers() -> dict[str, str]:
    """Return the text of every header by its file name in CANN; one header can declare several operators."""
    functions: dict[str, list[str]] = {}
    for name in served():
        op = OPERATORS.get(name)
        if op is not None and op.is_built_in:
            functions.setdefault(_header_of(op), []).append(declaration(op))
    return {
        file: _HEADER.format(guard=f"ACLNN_EMULATOR_{file.upper().replace('.', '_')}", functions="\n\n".join(texts))
        for file, texts in functions.items()
    }


def declaration(op: Operator) -> str:
    """Return the C declarations of an operator's two phases."""
    words = ", ".join([*map(argument, op.parameters), "uint64_t* workspaceSize", "aclOpExecutor** executor"])
    return _DECLARED.format(name=op.name, parameters=textwrap.indent(textwrap.fill(words, 112), "    "))


def _header_of(op: Operator) -> str:
    """Return the header's name: from the source that defines the functions, or from the slug if CANN generates them."""
    source = PurePosixPath(op.source)
    return f"{source.stem if source.stem.startswith('aclnn_') else f'aclnn_{op.slug}'}.h"


def argument(p: Parameter, prefix: str = "") -> str:
    """Return the C declaration of an operator's parameter."""
    if p.kind == "attr":
        return f"{_TYPES[p.c]} {prefix}{p.name}"
    return f"{'const ' if p.kind == 'input' else ''}aclTensor* {prefix}{p.name}"
