"""The headers from the pages: they agree with the emulated CANN's own sources, and a C++ compiler accepts all."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from oracle.cann.headers import add_headers, declaration, headers
from oracle.emulator import served
from oracle.emulator.toolkit import SOURCES, find_compiler
from oracle.operators import OPERATORS

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
