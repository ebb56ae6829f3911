"""Small catalogues for tests."""

from __future__ import annotations

from pathlib import Path

from oracle.catalogue import Case, default_dir, load
from oracle.catalogue.data.case import specs_of
from oracle.model.call import Call

HEAD = """\
aclnn_oracle: 1
operator: aclnnSoftmaxBackward
defaults:
  main: gradOutput
  attrs: {dim: -1}
  inputs: {gradOutput: normal, output: {gen: softmax, dim: $dim}}
  output: {}
families:
"""  # 8 lines: a family begins on line 9
# Operators with whole catalogues; those at the lean level generate fewer cases than the standard has points.
WHOLE = [
    default_dir() / f"{name}_backward.yaml"
    for name in ("binary_cross_entropy", "log_sigmoid", "nll_loss", "sigmoid", "softmax")
]
LOG_SIGMOID = """\
aclnn_oracle: 1
operator: aclnnLogSigmoidBackward
defaults:
  main: self
  inputs: {gradOutput: normal 0 2, self: normal 0 3, buffer: uniform 0 1}
  output: {}
families:
"""


def catalogue(folder: Path, families: str, head: str = HEAD, name: str = "c.yaml") -> Path:
    """Write a catalogue; the first line of ``families`` is line 9."""
    path = folder / name
    path.write_text(head + families, encoding="utf-8")
    return path


def cases(folder: Path, families: str, head: str = HEAD) -> list[Case]:
    return load(catalogue(folder, families, head))


def described(case: Case, soc: str) -> Call:
    """Return the call without data: validation needs no more."""
    specs = specs_of(case)
    inputs, outputs = ({n: specs.get(n) for n in names} for names in (case.inputs, case.outputs))
    return Call(case.op, soc, inputs, dict(case.attrs), outputs, specs, case.null)


def family(**keys: object) -> str:
    """Return one family ``f`` in flow style; values are YAML text."""
    written = {"why": "a reason to be", "dtype": "float32", "shape": "[[4, 6]]", **keys}
    return "  f: {" + ", ".join(f"{k}: {v}" for k, v in written.items() if v is not None) + "}\n"
