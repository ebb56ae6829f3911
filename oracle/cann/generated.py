"""C++ kernels for operators without a kernel in the emulated CANN, generated from declarations.

With a kernel an operator's cases can be tried through the C API without a device. The kernel computes the declared
orders in float32. Sums are in float64 and rounded once. The kernel calls Python for the checks. The user's four
operators, and the operators older than this module, keep hand-written kernels: these must be independent of the oracle.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from ..emulator import add_custom, build, build_custom, served
from ..model.aclnn import DEFAULT_SOC
from ..model.errors import OracleError
from ..numerics.exact.enclosures import round_constant
from ..numerics.expressions import LENGTH, Expression
from ..numerics.orders.formula import COUNT, PART, Formula, is_elementwise
from ..numerics.orders.kernel_orders import graphs_with
from ..numerics.orders.reducing import reduces, reducing
from ..numerics.traversal import Stage, names_of, walk
from ..operators import OPERATORS
from ..operators.answers.parts import accepted_dtypes
from ..operators.definition.operator import Operator
from ..operators.definition.parameters import Parameter
from ..operators.definition.roles import BROADCAST, HALF, LAST, MAIN, MUTUAL, PER_CHANNEL, PER_GROUP, ROWS, SAME
from .headers import argument

KERNELS = {"950": "k950", "tbe_a2": "kTbeA2", "tbe_910": "kTbe910"}  # the emulator's names of the public forms
_BROADCASTING = (MAIN, SAME, BROADCAST, MUTUAL)
_CHOICES = {"min": "smaller", "max": "larger", "sign": "sign"}
_LOGIC = {"and": "&&", "or": "||"}
_CALLS = {"exp", "log", "log1p", "expm1", "tanh", "erf", "erfc", "sqrt"}


def add_missing(names: Iterable[str] | None = None, toolkit: Path | None = None) -> None:
    """Build missing kernels of operators (all of this package, or some by name) for the emulated CANN, and make them
    available to this process. A kernel is also built if the emulated CANN has the operator only as the partner of a
    gradient. Kernels built before come from the user's cache."""
    here = set(served())
    known = [op for op in map(OPERATORS.get, OPERATORS if names is None else names) if op is not None]
    known = [op for op in known if op.is_built_in or names is not None]
    asked = [op for op in known if op.name not in here or (op.is_built_in and _is_forward(op))]
    toolkit = build() if asked and toolkit is None else toolkit  # once, not in every thread
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        made = pool.map(lambda op: build_custom(op.slug, {f"{op.slug}.cpp": source(op)}, toolkit=toolkit), asked)
        for package in made:
            add_custom(package)


def _is_forward(op: Operator) -> bool:
    """Return whether an operator has no gradient and can be computed elementwise from the call's own values."""
    if op.gradient is not None or any(each.terms is not None for each in op.each):
        return False
    if op.kernel_type is None and "int32" in accepted_dtypes(op, DEFAULT_SOC):
        return False  # integers must stay integers, and generated kernels compute in float32
    return all(
        is_elementwise(each.computes) and all(p.role in _BROADCASTING for p in each.operands) and not _made(each)
        for each in op.each
    )


def _made(op: Operator) -> set[str]:
    """Return the symbols of the public forms that are numbers which the host computes from the attributes."""
    assert isinstance(op.computes, Formula)
    graphs = graphs_with(op.computes, mean=op.reduction is not None)
    read = {name for kernel in KERNELS for name in names_of(graphs.form(kernel))}
    return read - {*_arrays(op), *(p.symbol for p in _attributes(op)), COUNT}


def source(op: Operator) -> str:
    """Return the C++ text of an operator whose outputs are elementwise or reduce over axes. Raises OracleError for any
    other."""
    return _TEMPLATE.format(
        name=op.name,
        forms="\n\n".join(_forms(each) for each in op.each),
        arguments=", ".join(argument(p, "a_") for p in op.parameters),
        declared="\n".join(f"    {_declared(p)}" for p in op.parameters),
        tensors=", ".join(f"t_{p.name}" for p in op.parameters if p.kind != "attr"),
        outputs="\n".join(_output(each) for each in op.each),
    )


_TEMPLATE = """\
// {name}: written from the operator's declaration.
#include <algorithm>
#include <string>

#include "ops/checks.h"
#include "ops/parts.h"
#include "ops/reduced.h"

using namespace emu;

namespace {{

[[maybe_unused]] float sign(float x) {{ return std::isnan(x) ? x : static_cast<float>((x > 0) - (x < 0)); }}
[[maybe_unused]] float smaller(float a, float b) {{ return std::isnan(a) || a < b ? a : b; }}
[[maybe_unused]] float larger(float a, float b) {{ return std::isnan(a) || a > b ? a : b; }}
[[maybe_unused]] float place(const char* word, const std::vector<std::string>& words) {{
  const auto found = std::find(words.begin(), words.end(), word == nullptr ? "" : word);
  return found == words.end() ? 0 : static_cast<float>(found - words.begin());
}}

{forms}

}}  // namespace

EMU_FIRST_PHASE({name}, {arguments}) {{
{declared}
    if (!op.ask_checks("{name}")) return;
    op.workspace({{{tensors}}});
    op.kernel([=](Run& run) {{
{outputs}
    }});
}}
EMU_END({name})
"""
_OUTPUT = """\
      {{
        View to = run.open(t_{out});
        const Dims& shape = {shape};
        const size_t size = static_cast<size_t>(count_of(shape));
        const Dims terms = {terms};
        const Reduced rows(terms, {over});
        const bool per_row = static_cast<size_t>(to.count()) != size;
        const float n = {count};
{read}
        std::vector<float> values;
        if (size == 0) {{
          values.assign(static_cast<size_t>(to.count()), {fill});
        }} else {{
          switch (soc().form) {{
{choices}
          }}
        }}
        for (float& v : values) v = round_to({kind}, v);
        write(to, values);
      }}"""


def _forms(op: Operator) -> str:
    """Return the public forms of one output as C++ functions."""
    if is_elementwise(op.computes) and op.terms is None:
        if made := _made(op):
            raise OracleError(
                f"{op.name}: no kernel is made of numbers that the host makes ({', '.join(sorted(made))})"
            )
        graphs = graphs_with(op.computes, mean=op.reduction is not None)
        return "\n".join(_form(op, (), graphs.form(kernel), kernel) for kernel in KERNELS)
    if reduces(op.computes) and not op.computes.knows_places and not reducing(op.computes).value.sums_rows:
        forms = [(reducing(op.computes).form(kernel), kernel) for kernel in KERNELS]
        return "\n".join(_form(op, form.stages, form.outer, kernel) for form, kernel in forms)
    raise OracleError(
        f"{op.name}: {op.output} is neither elementwise nor a formula with reductions alone, so that it gets no kernel "
        "in the emulated CANN by itself; write one in C++, build it with oracle.emulator.build_custom, and name its "
        "folder in the environment variable ASCEND_CUSTOM_OPP_PATH"
    )


def _output(op: Operator) -> str:
    """Return the C++ lines that compute one output."""
    mask = op.attribute("mask")
    asked = "" if mask is None else f"      if (v_{mask.name}[{op.outputs.index(op.output)}])\n"
    reads = [line for p in op.operands for line in _read(op, p)]
    if _asks_for_part(op):
        axis, count = _parts(op)
        reads.append(f"std::vector<float> x_{PART} = part_numbers(shape, {axis}, {count});")
    return asked + _OUTPUT.format(
        out=op.output,
        shape=f"t_{op.main}.shape" if reduces(op.computes) else "to.shape",
        over=_over(op),
        terms=_terms(op),
        read="\n".join(f"        {line}" for line in reads),
        kind=_DTYPES[op.dtype] if op.dtype else _kind(op),
        count=_count(op),
        fill=_fill(op),
        choices="\n".join(_case(op, name, word) for name, word in KERNELS.items()),
    )


def _fill(op: Operator) -> str:
    """Return the value that a call without elements fills an output with."""
    value = None if op.filled is None else op.filled(op.usual(()))
    return "NAN" if value is not None and np.isnan(value) else _literal(np.float32(value or 0))


_DTYPES = {"float32": "ACL_FLOAT", "float16": "ACL_FLOAT16", "bfloat16": "ACL_BF16"}


def _over(op: Operator) -> str:
    """Return the C++ expression for the axes that a formula reduces."""
    if not reduces(op.computes):
        return "last_axes(terms, 0)"
    _, but, name = op.computes.over.rpartition("all but ")
    if name == "all":
        return "last_axes(terms, terms.size())"
    parameter = op.by_name[name]
    if parameter.role == "axis":
        result = f"one_axis(terms, a_{name})"
    elif parameter.role == "lengths":
        result = f"last_axes(terms, v_{name}.size())"
    elif parameter.role == "groups":
        result = "last_axes(terms, terms.size() - 2)"
    elif parameter.role is PER_CHANNEL:
        result = "one_axis(terms, 1)"
    elif parameter.role in (LAST, MAIN):
        result = f"last_axes(terms, t_{name}.shape.size())"
    else:
        raise OracleError(f"{op.name}: the axes of {name} are not known to the emulated CANN")
    return f"others({result})" if but else result


def _terms(op: Operator) -> str:
    """Return the C++ expression for the shape of a formula's values."""
    groups = op.attribute("groups")
    split = groups is not None and isinstance(op.computes, Formula) and op.computes.over == groups.name
    return f"grouped(shape, a_{groups.name})" if split and groups else "shape"


def _form(op: Operator, stages: Iterable[Stage], outer: Expression, kernel: str) -> str:
    """Return a public form as a C++ function of all operands. ``outer``: the graph of an element after the stages."""
    texts = {**{symbol: f"x_{symbol}[i]" for symbol in _arrays(op)}, LENGTH: "length", COUNT: COUNT}
    texts |= {p.symbol: f"v_{p.symbol}" for p in _attributes(op)}
    texts |= {stage.name: f"{_word(stage.name)}[rows.row[i]]" for stage in stages}
    body = []
    for stage in stages:
        lines, result = _lines(stage.terms, texts, "    ")
        body += [f"  const auto {_word(stage.name)} = rows.{stage.kind}([&](size_t i) {{"]
        body += [*lines, f"    return {result};", "  });"]
    lines, result = _lines(outer, texts, "    ")
    body += ["  std::vector<float> out(per_row ? rows.count() : rows.row.size());"]
    body += ["  for (size_t k = 0; k < out.size(); k++) {", "    const size_t i = per_row ? rows.first[k] : k;"]
    body += [*lines, f"    (void)i;\n    out[k] = {result};", "  }", "  return out;"]
    parameters = [f"float {COUNT}", *(f"const std::vector<float>& x_{symbol}" for symbol in _arrays(op))]
    parameters += [f"aclDataType k_{p.symbol}" for p in op.inputs() if p.symbol]
    parameters += [f"float v_{p.symbol}" for p in _attributes(op)]
    unused = " ".join(f"(void){p.rpartition(' ')[2]};" for p in parameters)
    head = (
        f"std::vector<float> form_{op.output}_{kernel}(const Reduced& rows, bool per_row, {', '.join(parameters)}) {{"
    )
    length = "  [[maybe_unused]] const float length = static_cast<float>(rows.length);"
    return "\n".join([head, f"  {unused}", length, *body, "}"])


def _word(name: str) -> str:
    return name.replace(" ", "_")


def _case(op: Operator, kernel: str, word: str) -> str:
    texts = [COUNT, *(f"x_{symbol}" for symbol in _arrays(op)), *(_type_of(op, p) for p in op.inputs() if p.symbol)]
    texts += [f"v_{p.name}" for p in _attributes(op)]
    form = f"form_{op.output}_{kernel}"
    return f"          case KernelForm::{word}: values = {form}(rows, per_row, {', '.join(texts)}); break;"


def _type_of(op: Operator, p: Parameter) -> str:
    """Return an input's type in C++; for an absent input the main operand's type."""
    return f"t_{p.name}.present ? t_{p.name}.type : t_{op.main}.type" if p.optional else f"t_{p.name}.type"


def _declared(p: Parameter) -> str:
    name = f'"{p.name}"'
    if p.kind != "attr":
        return f"Tensor t_{p.name} = op.{p.kind}({name}, a_{p.name});"
    if p.c == "aclScalar":
        plain = _literal(np.float32(0 if p.plain is None else p.plain))
        held = f"auto s_{p.name} = op.optional_scalar({name}, a_{p.name});"
        return f"{held} float v_{p.name} = s_{p.name} == nullptr ? {plain} : s_{p.name}->to_float();"
    if p.c in ("aclIntArray", "aclBoolArray"):
        return f"const auto v_{p.name} = op.array({name}, a_{p.name});"
    if p.c == "char*":
        words = ", ".join(f'"{word}"' for word in p.words)
        word = f"op.attribute({name}, static_cast<const char*>(a_{p.name}))"
        return f"float v_{p.name} = place({word}, {{{words}}}); (void)v_{p.name};"
    number = f"const float n_{p.name} = static_cast<float>(op.attribute({name}, a_{p.name}));"
    known = f"n_{p.name} > 0 && n_{p.name} < {len(p.choices)} ? n_{p.name} : 0.0f"  # any other number means the first
    return f"{number} float v_{p.name} = {known if p.role == 'choice' else f'n_{p.name}'}; (void)v_{p.name};"


def _parts(op: Operator) -> tuple[str, int]:
    """Return the C++ word for the axis along which an input has parts, and the number of parts (0: no such input)."""
    axis = op.attribute("axis")
    return ("" if axis is None else f"a_{axis.name}"), max((len(p.parts) for p in op.inputs()), default=0)


def _asks_for_part(op: Operator) -> bool:
    return isinstance(op.computes, Formula) and PART in op.computes.symbols


def _read(op: Operator, p: Parameter) -> list[str]:
    opened, (axis, count) = f"run.open(t_{p.name})", _parts(op)
    if p.parts:
        each = enumerate(p.parts)
        return [f"std::vector<float> x_{name} = part_of({opened}, shape, {axis}, {k}, {count});" for k, name in each]
    if p.role is HALF:
        return [f"std::vector<float> x_{p.symbol} = once_per_part({opened}, shape, {axis});"]
    texts = _spread(op, p, opened)
    values = f"t_{p.name}.present ? {texts} : std::vector<float>(size, {p.absent}.0f)" if p.optional else texts
    return [f"std::vector<float> x_{p.symbol} = {values};"]


def _spread(op: Operator, p: Parameter, opened: str) -> str:
    """Return the C++ values of an operand, one for every element of the main operand. An operand with one value per
    row, or per element, can have any shape."""
    lengths, groups = op.attribute("lengths"), op.attribute("groups")
    if p.role is PER_CHANNEL:
        return f"Reduced(shape, others(one_axis(shape, 1))).spread(read_floats({opened}))"
    if p.role is PER_GROUP and groups is not None:
        split = f"grouped(shape, a_{groups.name})"
        return f"Reduced({split}, last_axes({split}, shape.size() - 1)).spread(read_floats({opened}))"
    if p.role is ROWS and lengths is not None:
        return f"Reduced(shape, last_axes(shape, v_{lengths.name}.size())).spread(read_floats({opened}))"
    if p.role is SAME and reduces(op.computes):
        return f"read_floats({opened})"
    return f"read_floats(broadcast({f'leading({opened}, shape)' if p.role is ROWS else opened}, shape))"


def _arrays(op: Operator) -> list[str]:
    """Return the formula's symbols of the operands that are arrays."""
    return [symbol for p in op.operands for symbol in p.symbols] + ([PART] if _asks_for_part(op) else [])


def _attributes(op: Operator) -> list[Parameter]:
    """Return the attributes that a formula reads."""
    return [p for p in op.attributes if p.symbol]


def _kind(op: Operator) -> str:
    """Return the C++ expression for the type that the host computes in: that of the main operand, of the operand named
    by ``like``, or the common type of the operands."""
    if op.like:
        return f"t_{op.like}.type"
    if op.kernel_type is None and not op.mutual:
        return f"t_{op.main}.type"
    first, *others = [f"t_{p.name}" for p in op.operands if not p.optional]
    kind = f"{first}.type"
    for other in others:
        kind = f"promote({kind}, {other}.type)"
    return kind


def _count(op: Operator) -> str:
    """Return the C++ expression for the divisor of a mean; 1 without a mean."""
    reduction = op.reduction
    if reduction is None:
        return "1.0f"
    mean = reduction.words.index("mean")
    main = next(p.name for p in op.parameters if p.role is MAIN)
    return f"a_{reduction.name} == {mean} ? static_cast<float>(count_of(t_{main}.shape)) : 1.0f"


def _lines(root: Expression, texts: Mapping[str, str], indent: str) -> tuple[list[str], str]:
    """Return a graph as C++ statements, and the word for its value. ``texts``: the words of its symbols."""
    lines, words = [], {}
    for k, node in enumerate(walk(root)):
        if node.is_constant:
            words[id(node)] = _literal(np.float32(round_constant(node, "float32")))
        elif node.op == "symbol":
            words[id(node)] = texts[str(node.value)]
        else:
            words[id(node)] = f"t{k}"
            kind = "bool" if node.is_condition else "float"
            lines.append(f"{indent}const {kind} t{k} = {_written(node, [words[id(a)] for a in node.args])};")
    return lines, words[id(root)]


def _written(node: Expression, args: list[str]) -> str:
    op = node.op
    if op == "where":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if op in ("min", "max", "sign"):
        return f"{_CHOICES[op]}({', '.join(args)})"
    if op in _CALLS or op == "abs":
        return f"std::{'fabs' if op == 'abs' else op}({args[0]})"
    if op.startswith("stored"):
        kind, only = f"k_{node.args[1].value}", _DTYPES.get(op.partition(" ")[2])
        return f"round_to({kind if only is None else f'{kind} == {only} ? {kind} : ACL_FLOAT'}, {args[0]})"
    if op == "neg":
        return f"-{args[0]}"
    if op == "not":
        return f"!{args[0]}"
    return f"{args[0]} {_LOGIC.get(op, op)} {args[1]}"


def _literal(value: np.float32) -> str:
    """Return a float32 number as an exact C++ literal."""
    return f"{float(value).hex()}f" if np.isfinite(value) else f"static_cast<float>({float(value)})"
