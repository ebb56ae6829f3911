"""C++ for an operator from outside: its formula's kernels as an operator of the emulated CANN.

An operator that lives in another repository has no kernel in the emulator; from its declaration one is written, so that
its cases can be tried through the C API without a device. It computes what the declared orders say, in float32, and
asks Python for the checks. The suite's own operators keep kernels written by hand: they must not know the oracle.
"""

from __future__ import annotations

import numpy as np

from ..model.errors import OracleError
from ..numerics.exact.enclosures import round_constant
from ..numerics.formula.expressions import Expression
from ..numerics.formula.traversal import walk
from ..numerics.orders.kernel_orders import COUNT, Formula, is_elementwise
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import MAIN, Parameter

KERNELS = {"950": "k950", "tbe_a2": "kTbeA2", "tbe_910": "kTbe910"}  # the emulator's names of the public forms
_TYPES = {
    "int64": "int64_t",
    "aclScalar": "const aclScalar*",
    "float": "float",
    "double": "double",
    "bool": "bool",
    "char*": "char*",
}
_CHOICES = {"min": "smaller", "max": "larger", "sign": "sign"}
_LOGIC = {"and": "&&", "or": "||"}
_CALLS = {"exp", "log", "log1p", "expm1", "tanh", "erf", "sqrt"}


def source(op: Operator) -> str:
    """Return the C++ text of an elementwise operator of one output. Raises OracleError for any other."""
    if not is_elementwise(op.computes) or op.further:
        raise OracleError(
            f"{op.name}: only an elementwise operator of one output gets a kernel in the emulated CANN by itself; "
            "write one in C++ and build it with oracle.emulator.build_custom"
        )
    return _TEMPLATE.format(
        name=op.name,
        forms="\n".join(_form(op, op.computes, kernel) for kernel in KERNELS),
        arguments=", ".join(_argument(p) for p in op.parameters),
        declared="\n".join(f"    {_declared(p)}" for p in op.parameters),
        tensors=", ".join(f"t_{p.name}" for p in op.parameters if p.kind != "attr"),
        read="\n".join(f"      {line}" for p in op.operands for line in _read(op, p)),
        kind=_kind(op),
        main=f"t_{op.main}",
        out=f"t_{op.output}",
        count=_count(op),
        choices="\n".join(_case(op, name, word) for name, word in KERNELS.items()),
    )


_TEMPLATE = """\
// {name}: written from the operator's declaration.
#include "ops/checks.h"

using namespace emu;

namespace {{

float sign(float x) {{ return std::isnan(x) ? x : static_cast<float>((x > 0) - (x < 0)); }}
float smaller(float a, float b) {{ return std::isnan(a) || a < b ? a : b; }}
float larger(float a, float b) {{ return std::isnan(a) || a > b ? a : b; }}

{forms}

}}  // namespace

EMU_C aclnnStatus {name}GetWorkspaceSize({arguments}, uint64_t* workspaceSize, aclOpExecutor** executor) {{
  static FirstPhase phase("{name}");
  return phase(workspaceSize, executor, [&](Op& op) {{
{declared}
    if (!op.ask_checks("{name}")) return;
    op.workspace({{{tensors}}});
    op.kernel([=](Run& run) {{
      View to = run.open({out});
      const size_t size = static_cast<size_t>(to.count());
      const float n = {count};
{read}
      std::vector<float> values(size);
      for (size_t i = 0; i < size; i++) {{
        float v = 0;
        switch (soc().form) {{
{choices}
        }}
        values[i] = round_to({kind}, v);
      }}
      write(to, values);
    }});
  }});
}}
EMU_SECOND_PHASE({name})
"""


def _case(op: Operator, kernel: str, word: str) -> str:
    return f"        case KernelForm::{word}: v = form_{kernel}({_given(op)}); break;"


def _argument(p: Parameter) -> str:
    if p.kind == "attr":
        return f"{_TYPES[p.c]} a_{p.name}"
    return f"{'const ' if p.kind == 'input' else ''}aclTensor* a_{p.name}"


def _declared(p: Parameter) -> str:
    name = f'"{p.name}"'
    if p.kind != "attr":
        return f"Tensor t_{p.name} = op.{p.kind}({name}, a_{p.name});"
    if p.c == "aclScalar":
        plain = _literal(np.float32(0 if p.plain is None else p.plain))
        held = f"auto s_{p.name} = op.optional_scalar({name}, a_{p.name});"
        return f"{held} float v_{p.name} = s_{p.name} == nullptr ? {plain} : s_{p.name}->to_float();"
    if p.c == "char*":
        return f"op.attribute({name}, static_cast<const char*>(a_{p.name}));"
    return f"float v_{p.name} = static_cast<float>(op.attribute({name}, a_{p.name})); (void)v_{p.name};"


def _read(op: Operator, p: Parameter) -> list[str]:
    given = f"read_floats(broadcast(run.open(t_{p.name}), {'t_' + op.output}.shape))"
    values = f"t_{p.name}.present ? {given} : std::vector<float>(size, 1.0f)" if p.optional else given
    return [f"std::vector<float> x_{p.symbol} = {values};"]


def _symbols(op: Operator) -> list[str]:
    return [p.symbol for p in op.operands] + [p.symbol for p in op.parameters if p.kind == "attr" and p.symbol]


def _given(op: Operator) -> str:
    values = [f"x_{p.symbol}[i]" for p in op.operands]
    values += [f"v_{p.name}" for p in op.parameters if p.kind == "attr" and p.symbol]
    return ", ".join([*values, "n"])


def _kind(op: Operator) -> str:
    """The type the host computes in: the common one of the operands."""
    first, *others = [f"t_{p.name}" for p in op.operands if not p.optional]
    kind = f"{first}.type"
    for other in others:
        kind = f"promote({kind}, {other}.type)"
    return kind


def _count(op: Operator) -> str:
    """What a mean divides by; 1 without one."""
    reduction = op.reduction
    if reduction is None:
        return "1.0f"
    mean = reduction.words.index("mean")
    main = next(p.name for p in op.parameters if p.role is MAIN)
    return f"a_{reduction.name} == {mean} ? static_cast<float>(count_of(t_{main}.shape)) : 1.0f"


def _form(op: Operator, scheme: Formula, kernel: str) -> str:
    """A public form as a C++ function of one element."""
    root = scheme.graphs(mean=op.reduction is not None).form(kernel)
    lines, words = [], {}
    for k, node in enumerate(walk(root)):
        if node.is_constant:
            words[id(node)] = _literal(np.float32(round_constant(node, "float32")))
        elif node.op == "symbol":
            words[id(node)] = COUNT if node.value == COUNT else f"s_{node.value}"
        else:
            words[id(node)] = f"t{k}"
            kind = "bool" if node.is_condition else "float"
            lines.append(f"  const {kind} t{k} = {_written(node, [words[id(a)] for a in node.args])};")
    parameters = ", ".join([*(f"float s_{s}" for s in _symbols(op)), f"float {COUNT}"])
    unused = " ".join(f"(void)s_{s};" for s in _symbols(op))
    body = "\n".join(lines)
    return f"float form_{kernel}({parameters}) {{\n  {unused} (void){COUNT};\n{body}\n  return {words[id(root)]};\n}}"


def _written(node: Expression, args: list[str]) -> str:
    op = node.op
    if op == "where":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if op in ("min", "max", "sign"):
        return f"{_CHOICES[op]}({', '.join(args)})"
    if op in _CALLS or op == "abs":
        return f"std::{'fabs' if op == 'abs' else op}({args[0]})"
    if op == "neg":
        return f"-{args[0]}"
    if op == "not":
        return f"!{args[0]}"
    return f"{args[0]} {_LOGIC.get(op, op)} {args[1]}"


def _literal(value: np.float32) -> str:
    """A float32 number as C++ writes it, exactly."""
    return f"{float(value).hex()}f" if np.isfinite(value) else f"static_cast<float>({float(value)})"
