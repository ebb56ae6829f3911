"""What is generated from declarations: kernels compute the declared orders, bit for bit; headers are CANN's own."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from oracle import Call, OracleError
from oracle.backends import load
from oracle.cann.generated import source
from oracle.cann.headers import add_headers, declaration, headers
from oracle.emulator import add_custom, build_custom, served
from oracle.emulator.toolkit import SOURCES, find_compiler
from oracle.operators import OPERATORS, compute, operator

PAGE = """
from oracle.numerics.orders.kernel_orders import Formula
from oracle.numerics.expressions import equal, maximum, minimum, ratio, sign, where
from oracle.operators import Operator
from oracle.operators.definition.checks import dtype_in, ends_if_empty, float_types, not_null, promotes
from oracle.operators.definition.parameters import choice, flag, number, output, reduction, tensor
from oracle.operators.definition.roles import BROADCAST, MAIN


def formula(g, x, w, b, f, m):
    inside = (x > -1) & ~(x >= 2) | equal(x, 3)
    return where(inside, g * w * (x * ratio(1, 3) + b), maximum(minimum(g, x), sign(x) * f)) - abs(x) + m


def other_order(g, x, w, b, f, m):
    inside = (x > -1) & ~(x >= 2) | equal(x, 3)
    return where(inside, w * (x * ratio(1, 3) + b) * g, maximum(minimum(g, x), f * sign(x))) - abs(x) + m


def checks(a, platform):
    yield not_null(a, "grad", "self", "out")
    yield dtype_in(a, "self", float_types(platform))
    yield ends_if_empty(a, "self")


OPERATOR = Operator(
    name="aclnnGeneratedBackward",
    parameters=(
        tensor("grad", "g", BROADCAST), tensor("self", "x", MAIN), tensor("scale", "w", BROADCAST, optional=True),
        number("beta", "b", optional=True, plain=0.5), flag("keep", "f"), choice("mode", ("plain", "raised"), "m"),
        reduction("reduction"), output("out"),
    ),
    documented=("ascend950",),
    checks=checks,
    empty=("self",),
    computes=Formula(formula, {"950": formula, "tbe": other_order}),
)
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outside")
    (folder / "generated_backward_page.py").write_text(textwrap.dedent(PAGE))
    sys.path.insert(0, str(folder))
    OPERATORS.add("generated_backward_page:OPERATOR")
    yield operator("aclnnGeneratedBackward")
    OPERATORS.remove("aclnnGeneratedBackward")
    sys.path.remove(str(folder))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("given", [True, False])
def test_a_generated_kernel_gives_the_declared_orders_bits(generated, emulator, tree, dtype, given):
    add_custom(build_custom(generated.slug, {"generated.cpp": source(generated)}, toolkit=tree))
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 4, (5, 7)).astype(dtype)
    x[0, :6] = [3, 2, -1, 0, -0.0, np.nan]
    inputs = {"grad": rng.normal(size=7).astype(dtype), "self": x, "scale": rng.normal(size=(5, 1)).astype(dtype)}
    inputs["scale"] = inputs["scale"] if given else None
    attrs = {"beta": None, "keep": False, "mode": None, "reduction": 0}
    attrs = {"beta": 0.3, "keep": True, "mode": "raised", "reduction": 1} if given else attrs
    call = Call(generated.name, "ascend910b", inputs, attrs, {"out": np.zeros_like(x)})
    with closing(load("aclnn", {"timeout": "20"})) as device:
        assert device.run(call).ok
    np.testing.assert_array_equal(call.outputs["out"], compute(call, numerics="kernel"))


def test_an_output_that_is_no_formula_of_its_place_or_row_gets_no_kernel_by_itself():
    with pytest.raises(OracleError, match="neither elementwise nor a formula with reductions"):
        source(operator("aclnnPreluBackward"))


# headers --------------------------------------------------------------------------------------------------------------

WRITTEN = SOURCES / "include" / "aclnnop"
DECLARED = re.compile(r"ACL_FUNC_VISIBILITY[^;]*;")


def declared(text: str) -> list[str]:
    """Return the declarations without spaces, and without const: a page declares even an unread buffer as an input."""
    return [re.sub(r"\s+|const", "", each) for each in DECLARED.findall(text)]


def test_a_header_by_hand_and_one_from_a_page_declare_the_same() -> None:
    made = headers()
    both = [path for path in WRITTEN.glob("*.h") if path.name in made]
    assert len(both) == len(list(WRITTEN.glob("*.h"))) - 1  # aclnn_add.h has no page
    for path in both:
        assert declared(path.read_text("utf-8")) == declared(made[path.name]), path.name


def test_every_operator_that_is_served_and_has_a_page_is_declared_once() -> None:
    every = "".join(headers().values())
    for name in set(served()) & set(OPERATORS):
        assert every.count(declaration(OPERATORS[name])) == 1


@pytest.mark.slow
def test_a_program_includes_them_all_and_links(tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "tree"
    (copy / "include" / "aclnnop").mkdir(parents=True)
    for folder in ("acl", "aclnn"):
        (copy / "include" / folder).symlink_to(tree / "include" / folder)
    add_headers(copy)
    names = sorted(set(served()) & set(OPERATORS))
    lines = [f'#include "aclnnop/{name}"' for name in headers()]
    lines += ["int main() { return !(", *(f"reinterpret_cast<void*>({name}) &&" for name in names), "true); }"]
    (tmp_path / "all.cpp").write_text("\n".join(lines), "utf-8")
    libraries = [f"-L{tree}/lib64", "-lascendcl", "-lnnopbase", "-lopapi_nn"]
    flags = ["-std=c++17", "-Wall", "-Werror", "-Wno-address", f"-I{copy}/include"]
    subprocess.run([find_compiler(), *flags, "all.cpp", *libraries], cwd=tmp_path, check=True)
