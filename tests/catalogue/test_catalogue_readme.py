"""cases/README.md is correct: its example loads as described; its tables name every key, generator and view."""

from __future__ import annotations

import re
from pathlib import Path

from oracle.catalogue import default_dir, load
from oracle.catalogue.data.generators import GENERATORS, MODIFIERS
from oracle.catalogue.data.layout import VIEWS
from oracle.catalogue.written.reading import _validator

README = (default_dir() / "README.md").read_text("utf-8")


def test_the_example_expands_as_told(tmp_path: Path) -> None:
    example = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)[0]
    path = tmp_path / "example.yaml"
    path.write_text(example, encoding="utf-8")
    ids = [case.id for case in load(path)]
    assert len(ids) == 24
    assert ids[:2] == re.findall(r"^softmax_backward/\S+$", README, re.MULTILINE)


def test_the_shortest_why_is_as_told() -> None:
    least = _validator().schema["$defs"]["family"]["properties"]["why"]["minLength"]
    assert f"| `why` | one line, {least} characters or more" in README


def test_every_key_generator_and_view_is_explained() -> None:
    words = set(re.findall(r"[A-Za-z_]+", " ".join(re.findall(r"`([^`]*)`", README))))
    assert words >= set(_validator().schema["$defs"]["family"]["properties"])
    assert words >= set(GENERATORS)
    assert words >= {parameter.name for parameter in MODIFIERS}
    assert words >= {p.name for g in GENERATORS.values() for p in g.parameters}
    assert words >= set(VIEWS)
