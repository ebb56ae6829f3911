"""``aclnn-oracle new-operator``: write the two files of an operator, to be changed into the user's own."""

from __future__ import annotations

import argparse
import re
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

from ..model.errors import OracleError, writing
from ..operators import OPERATORS
from ..operators.definition.operator import slug_of
from . import Subparsers

DESCRIPTION = """\
Write an operator's page and its cases: SLUG.py with its OPERATOR, and SLUG.yaml. They describe an elementwise operator,
gradInput = gradOutput * exp(self), and run as they are; change the formula, the checks and the values into yours.
docs/adding-an-operator.md explains every line.
"""
EPILOG = """\
example:
  aclnn-oracle new-operator aclnnMyThingBackward --dir ops && cd ops
  aclnn-oracle run --operator my_thing_backward:OPERATOR
  aclnn-oracle power --operator my_thing_backward:OPERATOR my_thing_backward.yaml --tier smoke --seeds 1
"""


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "new-operator", description=DESCRIPTION, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", metavar="aclnnNAME", help="the aclnn name, for example aclnnMyThingBackward")
    parser.add_argument("--dir", type=Path, default=Path(), metavar="DIR", help="where to write (default: here)")
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Write the files; return the exit status."""
    name: str = args.name
    if not re.fullmatch(r"aclnn[A-Z][A-Za-z0-9]*", name):
        rule = "aclnn, a capital, and then letters and digits only, as in aclnnMyThingBackward"
        raise OracleError(f"{name!r}: the name must be {rule}")
    slug = slug_of(name)
    ours = __name__.partition(".")[0]  # an editable installation does not list it
    if slug in (ours, *sys.stdlib_module_names, *map(str.lower, packages_distributions())):
        raise OracleError(f"{name!r}: {slug}.py would stand in for the installed module {slug}; choose another name")
    if (known := OPERATORS.clash(name, slug)) is not None:
        raise OracleError(f"{name!r}: {known.origin} has {known.name} ({known.slug}); choose another name")
    folder: Path = args.dir
    files = {folder / f"{slug}.py": PAGE, folder / f"{slug}.yaml": CASES}
    for file in files:
        if file.exists():
            raise OracleError(f"{file} is there already; nothing was written")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for file, text in files.items():
                file.write_text(text.replace("aclnnNAME", name).replace("SLUG", slug), encoding="utf-8")
        except OSError:  # a full disk: the next try must not find half of a file
            for file in files:
                file.unlink(missing_ok=True)
            raise
    print("\n".join(f"wrote {file}" for file in files))
    where = "" if folder == Path() else f"cd {folder} && "
    print(f"try: {where}aclnn-oracle run --operator {slug}:OPERATOR")
    return 0


PAGE = '''\
"""aclnnNAME: gradInput = gradOutput * exp(self).

Sources: say which documents and which sources the checks and the formula come from, and where they differ.
Special values: the results of NaN, infinities and zeros, and the unspecified ones.
"""

from oracle.page import (
    MAIN,
    SAME,
    Aten,
    Formula,
    KernelName,
    Operator,
    dtype_in,
    ends_if_empty,
    exp,
    float_types,
    max_rank,
    not_null,
    output,
    same_dtype,
    same_shape,
    tensor,
)


def formula(g, x):
    """The document's formula, on the symbols of the parameters below."""
    return g * exp(x)


def checks(a, platform):
    """The checks of GetWorkspaceSize in the source's order; ``a`` holds descriptions of tensors, and attributes."""
    yield not_null(a, "gradOutput", "self", "gradInput")
    yield dtype_in(a, "self", float_types(platform))
    yield same_dtype(a, "gradOutput", "self")
    yield same_dtype(a, "gradInput", "self")
    yield max_rank(a, "self")
    yield same_shape(a, "gradOutput", "self")
    yield same_shape(a, "gradInput", "self")
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnNAME",
    parameters=(tensor("gradOutput", "g", SAME), tensor("self", "x", MAIN), output("gradInput")),
    checks=checks,
    computes=Formula(formula),
    points={"x": (0.0,)},  # values near which the formula or a kernel changes its way
    kernel=KernelName("SLUG_kernel", ("gradOutput", "self")),  # for ATK and TTK files; None if it has none
    # PyTorch's own function; None, the default, if it has none. This one keeps e^self in float32, as a kernel does.
    aten=Aten(lambda aten, t: (t["gradOutput"].float() * aten.exp(t["self"].float())).to(t["self"].dtype)),
)
'''

CASES = """\
aclnn_oracle: 1
operator: aclnnNAME

classes: all  # the families that every operator of this kind must face; what follows is this one's own

defaults:
  main: self
  inputs:
    gradOutput: nonzero 0.5 4
    self: normal 0 2
  output: {}

families:
  first_look:
    why: every dtype over the range where the result is an ordinary number
    tier: smoke
    dtype: floats
    shape: [[6, 35]]

  large_arguments:
    why: e^self beyond float16, beyond float32, and down to the subnormal numbers
    dtype: floats
    shape: [[20, 33]]
    variants:
      float16_end: {inputs: {self: uniform 9 11}}
      float32_end: {dtype: [bfloat16, float32], inputs: {self: uniform 86 88.5}}
      subnormal: {dtype: [bfloat16, float32], inputs: {self: uniform -100 -85}}
"""
