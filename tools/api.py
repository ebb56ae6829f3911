"""Write docs/api.md, the reference of the public names, from their docstrings.

python tools/api.py            write it
python tools/api.py --check    exit status 1 if the page differs from the docstrings
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import oracle
from oracle import adapter, backends, page, power

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
HEAD = """# The Python API

`python tools/api.py` writes this page from the docstrings. The names on it keep their meaning between releases, and
CHANGELOG.md lists every change. Commands are explained by `aclnn-oracle COMMAND --help`.

"""


def reference() -> str:
    """Return the page."""
    parts = [HEAD, *_module(oracle), *_names(oracle, oracle.__all__, "###")]
    parts += ["## `oracle.power`\n\n", *_names(power, power.__all__, "###")]
    parts += ["## `oracle.backends`\n\n", _text(backends), *_names(backends, ["Backend", "load"], "###")]
    parts += [*_module(adapter), *_names(adapter, adapter.__all__, "###"), *_module(page)]
    for title, names in _groups(page):
        parts += [f"### {title}\n\n", *_names(page, names, "####")]
    return "".join(parts).rstrip() + "\n"


def _module(module: ModuleType) -> Iterator[str]:
    yield f"## `{module.__name__}`\n\n"
    yield _text(module)


def _groups(module: ModuleType) -> Iterator[tuple[str, list[str]]]:
    """Yield the names that a module re-exports, by home module; the title is the first sentence of the home module."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            home = importlib.import_module(f"oracle.{node.module}")
            title = (home.__doc__ or "").partition("\n")[0].rstrip(".").replace("``", "`")
            yield title, [alias.asname for alias in node.names if alias.asname]


def _names(module: ModuleType, names: list[str], level: str) -> Iterator[str]:
    """Yield the names that need more than a sentence, each under a heading; then a table of all other names."""
    rows: list[str] = []
    for name in names:
        value = getattr(module, name)
        if isinstance(value, ModuleType):  # `oracle.operators` can be called; `oracle.power` comes below
            if not callable(value):
                continue
            value = vars(value)[name]
        if hasattr(value, "__origin__") or not (isinstance(value, type) or inspect.isroutine(value)):
            rows.append(f"| `{name}` | {_shown(value)} |\n")
            continue
        text, members = _text(value), [*_members(value, methods=module is not page)]
        if isinstance(value, type) or text.count("\n\n") > 1 or "\n- " in text:
            yield f"{level} `{name}`\n\n```python\n{_signature(name, value)}\n```\n\n{text}{''.join(members)}"
        else:
            rows.append(f"| `{_short(name, value)}` | {' '.join(text.split())} |\n")
    if rows:
        yield f"| name | meaning |\n|---|---|\n{''.join(rows)}\n"


def _shown(value: Any) -> str:
    """Return a constant as text: a role by its words, a table by its keys, a type by its name, others as they are."""
    if hasattr(value, "freedom"):
        return f"role: {value.name}"
    if isinstance(value, dict):
        return ", ".join(f"`{key}`" for key in value)
    return f"`{re.sub(r'typing[.]|collections[.]abc[.]|oracle(?:[.][a-z_]+)+[.]', '', str(value))}`"


def _defined(value: Any) -> ast.ClassDef | ast.FunctionDef:
    node = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    assert isinstance(node, (ast.ClassDef, ast.FunctionDef))
    return node


def _arguments(value: Any) -> list[str]:
    """Return the parameters of a function, or of a class: those of its __init__, or its fields, as in the source."""
    node = _defined(value)
    if isinstance(node, ast.ClassDef):
        own = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        if not own:
            return [ast.unparse(field) for field in node.body if isinstance(field, ast.AnnAssign)]
        node = own[0]
    arguments = node.args
    for argument in (*arguments.posonlyargs, *arguments.args):
        if argument.arg in ("self", "cls"):
            (arguments.posonlyargs or arguments.args).remove(argument)
    return re.split(r", (?![^\[(]*[\])])", ast.unparse(arguments)) if ast.unparse(arguments) else []


def _signature(name: str, value: Any) -> str:
    """Return a call in one line, or with one parameter per line."""
    node = _defined(value)
    is_function = isinstance(node, ast.FunctionDef)
    returns = f" -> {ast.unparse(node.returns)}" if is_function and node.returns else ""
    fields = [re.sub(r" = field\(default_factory=(\w+)\)", r" = \1()", each) for each in _arguments(value)]
    line = f"{name}({', '.join(fields)}){returns}"
    if len(line) <= 100:
        return line
    return f"{name}(\n{''.join(f'    {each},' + chr(10) for each in fields)}){returns}"


def _short(name: str, value: Any) -> str:
    """Return a call without types."""
    names = [re.sub(r":.*?(?= = |$)", "", each).replace(" = ", "=") for each in _arguments(value)]
    return f"{name}({', '.join(names)})"


def _text(value: Any) -> str:
    """Return a docstring as Markdown: parameters as a list, examples as code."""
    result: list[str] = []
    for block in re.split(r"\n\s*\n", inspect.getdoc(value) or ""):
        if block.startswith((">>>", "    ")):
            result.append(f"```python\n{textwrap.dedent(block)}\n```")
            continue
        listed = ""
        for part in re.split(r"(?<=[.]) (?=`[^`]+`(?:, `[^`]+`)*: |Raises )", _marked(block)):
            if re.match(r"`[^`]+`(?:, `[^`]+`)*: ", part):
                listed += _filled(f"- {part}") + "\n"
                continue
            result += [listed.rstrip()] if listed else []
            result.append(_filled(part))
            listed = ""
        result += [listed.rstrip()] if listed else []
    return "".join(f"{block}\n\n" for block in result)


def _marked(text: str) -> str:
    """Return a docstring's text with Markdown's marks of code."""
    return " ".join(re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text.replace("``", "`")).split())


def _filled(text: str) -> str:
    indent = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _members(value: Any, *, methods: bool) -> Iterator[str]:
    """Yield the fields with a ``#:`` comment, and the public properties and methods with a docstring."""
    if not isinstance(value, type):
        return
    result = [*_fields(value)]
    for name, member in vars(value).items() if methods else ():
        inside = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(inside) and inside.__doc__:
            result.append((name if isinstance(member, property) else _short(name, inside), inside.__doc__))
    yield from (_filled(f"- `{name}`: {_marked(text)}") + "\n" for name, text in result)
    yield "\n" if result else ""


def _fields(value: type) -> Iterator[tuple[str, str]]:
    comment: list[str] = []
    for line in inspect.getsource(value).splitlines():
        words = line.strip()
        name = re.match(r"(\w+):", words)
        if words.startswith("#:"):
            comment.append(words[2:].strip())
            continue
        if comment and name:
            yield name[1], " ".join(comment)
        comment = []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 where the page is old")
    made = reference()
    if parser.parse_args().check:
        if PAGE.is_file() and PAGE.read_text("utf-8") == made:
            return 0
        print(f"{PAGE.name} is not what the docstrings say: python tools/api.py")
        return 1
    PAGE.write_text(made, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
