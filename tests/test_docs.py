"""Names in the documents exist: files and folders, modules and members, commands and options, words of the code.

The documents are also easy to read: short sentences, plain words. The Chinese pages match the English ones: headings,
code, tables, numbers and names in code.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import oracle
from oracle import page
from oracle.cli import parser
from oracle.settings.options import OPTIONS

ROOT = Path(__file__).parents[1]
PAGES = (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "cases" / "README.md")
CHINESE = (*sorted((ROOT / "docs" / "zh").glob("*.md")), ROOT / "README.zh.md")
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SOURCES = ("oracle", "tests", "cases", "benchmarks", "examples")
SUFFIXES = (".py", ".yaml", ".md", ".cpp", ".h", ".csv", ".json", ".toml", ".txt", ".j2")
# Names of other projects, and of files that a reader makes: CANN's documents, a team's golden, an example's files.
ELSEWHERE = re.compile(
    r"golden\.py|resolve\.py|my_thing_backward|soft_clip_backward|my_rms_norm_grad|\w+_standard\.md|XPU_Cross_Check\.md|atk_aclnnX\.json"
    r"|info\.txt|npu-smi\.txt|latest\.(html|jsonl)|manifest\.json|~/|\$|reports/|cases/expectations/aclnn\.yaml"
    r"|data_type_utils\.h|(compiler|runtime|lib64|opp)/|torch_npu\.\w"
)
FORMED = {"bf16_eb"}  # names that the code composes
SERVED = re.compile(r"aclnn(?!\w*Backward)")  # the emulator's macros compose its names


def prose(page: Path) -> str:
    return BLOCK.sub("", page.read_text("utf-8"))


def quoted(page: Path) -> Iterator[str]:
    """Yield the texts between backticks, except blocks of code."""
    yield from re.findall(r"`([^`\n]+)`", prose(page))


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of every aclnn-oracle command, in the text and in blocks of code."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    for line in (*re.findall(r"`([^`\n]+)`", text), *text.splitlines()):
        result = re.match(r"\s*(?:\$ )?(?:.*&& )?aclnn-oracle ([^#`|>]*)", line)
        if result:
            yield result.group(1).split()


@cache
def files() -> tuple[str, ...]:
    """Return every file of the project, and the folders above it, as paths that begin with a slash."""
    result = {
        p
        for folder in (*SOURCES, "docs")
        for p in (ROOT / folder, *(ROOT / folder).rglob("*"))
        if "__pycache__" not in p.parts
    }
    result |= {p for p in ROOT.iterdir() if p.is_file()}
    return tuple("/" + p.relative_to(ROOT).as_posix() + ("/" if p.is_dir() else "") for p in result)


def is_path(text: str) -> bool:
    plain = " " not in text and "=" not in text and "[" not in text and not text.startswith(("-", "/", "."))
    return plain and (text.endswith(SUFFIXES) or re.fullmatch(r"[\w.<>*-]+(/[\w.<>*-]+)*/", text) is not None)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_files_and_folders_exist(page: Path) -> None:
    paths = [text for text in {*quoted(page)} if is_path(text) and not ELSEWHERE.match(text)]
    patterns = {text: "/" + re.sub(r"\\\*|<[\w-]+>", "[^/]*", re.escape(text)) + "$" for text in paths}
    assert [text for text, pattern in patterns.items() if not any(re.search(pattern, f) for f in files())] == []


@pytest.mark.parametrize("page", [*PAGES, *CHINESE], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose(page)):
        assert (page.parent / target).exists(), f"{page.name}: a link to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_modules_and_members_exist(page: Path) -> None:
    names = [text for text in {*quoted(page)} if not is_path(text) and not ELSEWHERE.match(text)]
    assert [text for text in names if not is_known(text)] == []


def is_known(text: str) -> bool:
    """Return whether ``oracle.a.b`` can be imported, or ``A.b`` is a member of a class or module A of the package."""
    if re.match(r"(import )?oracle\.[a-z]", text):
        return is_importable(re.split(r"[( ]", text.removeprefix("import "))[0].replace(":", "."))
    result = re.fullmatch(r"(\w+)\.([a-z_]\w*)(\(.*\))?", text)
    return result is None or result[1] not in owners() or result[2] in owners()[result[1]]


def is_importable(name: str) -> bool:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            result = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            result = getattr(result, part, None)
        return result is not None
    return False


@cache
def owners() -> dict[str, set[str]]:
    """Return the members of every class and module of the package, by its name."""
    result: dict[str, set[str]] = {}
    for path in (ROOT / "oracle").rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for name, node in [(path.stem, tree), *((n.name, n) for n in ast.walk(tree) if isinstance(n, ast.ClassDef))]:
            inside = result.setdefault(name, set())
            for each in ast.walk(node):
                if isinstance(each, (ast.FunctionDef, ast.ClassDef)):
                    inside.add(each.name)
                elif isinstance(each, (ast.Name, ast.Attribute)) and isinstance(each.ctx, ast.Store):
                    inside.add(each.id if isinstance(each, ast.Name) else each.attr)
    return result


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_commands_and_their_options_exist(page: Path) -> None:
    made = parser()
    subparsers = next(a for a in made._actions if getattr(a, "choices", None)).choices
    passed_on = {o.flag for o in OPTIONS} | {o.prefixed for o in OPTIONS} | {"--dist"}  # xdist's
    for words in commands(page):
        if not words or not re.fullmatch(r"[a-z][a-z-]*", words[0]):
            continue
        assert words[0] in subparsers, f"{page.name}: aclnn-oracle {words[0]}"
        known = set(subparsers[words[0]]._option_string_actions) | passed_on
        for option in (w.partition("=")[0].rstrip("],)") for w in words if w.startswith("--")):
            assert option in known, f"{page.name}: aclnn-oracle {words[0]} {option}"


@cache
def words_of_the_code() -> frozenset[str]:
    text = [
        path.read_text("utf-8", errors="replace")
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".yaml", ".cpp", ".h", ".txt", ".j2", ".js", ".csv", ".json", ".lst")
        and path != Path(__file__)
    ]
    return frozenset(word for each in text for word in re.findall(r"\w+", each))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_names_of_the_code_occur_in_it(page: Path) -> None:
    """A name with an underscore or an inner capital is a name of the code, unless it belongs to another project."""
    written = r"\w*[a-z0-9](_|[A-Z])\w*|[A-Z]+_[A-Z_]+"
    names = [text for text in {*quoted(page)} if re.fullmatch(written, text) and not ELSEWHERE.match(text)]
    known = words_of_the_code() | FORMED
    assert [text for text in names if text not in known and not SERVED.match(text)] == []


def test_docstrings_and_the_api_page_agree() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools/api.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# The Chinese pages ----------------------------------------------------------------------------------------------------

PAIRS = {ROOT / "README.md": ROOT / "README.zh.md"} | {ROOT / "docs" / page.name: page for page in CHINESE[:-1]}
NEEDED = {"reading-a-report.md", "adding-an-operator.md", "adding-a-backend.md", "on-a-real-npu.md", "search.md"}
# Numbers of the text: not inside a word, an option or a path.
NUMBER = re.compile(r"(?<![A-Za-z0-9_./-])(?:\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![A-Za-z0-9_/-])")
both = pytest.mark.parametrize("pages", PAIRS.items(), ids=[page.name for page in PAIRS])


def test_the_pages_that_users_need_are_there_in_chinese() -> None:
    assert {path.name for path in CHINESE[:-1]} == NEEDED


@both
def test_headings_code_blocks_and_tables_are_the_same(pages: tuple[Path, Path]) -> None:
    levels = [[len(mark) for mark in re.findall("^(#+) ", prose(page), re.MULTILINE)] for page in pages]
    assert levels[0] == levels[1]
    blocks = [BLOCK.findall(page.read_text("utf-8")) for page in pages]
    assert blocks[0] == blocks[1]
    rows = [sum(line.startswith("|") for line in prose(page).splitlines()) for page in pages]
    assert rows[0] == rows[1]


@both
def test_numbers_and_code_in_the_text_are_the_same(pages: tuple[Path, Path]) -> None:
    texts = [prose(page) for page in pages]
    code = [Counter(" ".join(result.split()) for result in re.findall("`([^`]+)`", text)) for text in texts]
    assert code[0] == code[1]
    plain = [re.sub(r"`[^`]+`|\]\([^)]*\)", " ", text) for text in texts]
    numbers = [Counter(NUMBER.findall(text)) for text in plain]
    assert numbers[0] - numbers[1] == Counter()


@pytest.mark.parametrize("module", [oracle, page], ids=lambda module: module.__name__)
def test_examples_run(module: ModuleType) -> None:
    failed, attempted = doctest.testmod(module)
    assert failed == 0 < attempted
