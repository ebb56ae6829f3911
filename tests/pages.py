"""Reading an HTML page back: a strict enough parser to see structure, text, attributes and embedded data."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

VOID = frozenset({"meta", "input", "br", "hr", "link", "img", "wbr"})
FOREIGN = frozenset({"rect", "path"})  # self-closing inside svg


class Page(HTMLParser):
    """A parsed page; AssertionError where an element is not closed or closed out of order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.visible: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert len(given) == len(attrs), f"an attribute twice: {attrs}"
        self.elements.append((tag, given))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((given, ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in FOREIGN, f"<{tag}/> is not self-closing in HTML"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> inside {self.open}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if "script" in self.open:
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif "style" not in self.open and "template" not in self.open:
            self.visible.append(data)

    @property
    def text(self) -> str:
        """Return the visible text with scripts off, white space collapsed."""
        return " ".join(" ".join(self.visible).split())

    @property
    def data(self) -> Any:
        (result,) = (text for attrs, text in self.scripts if attrs.get("type") == "application/json")
        return json.loads(result)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.elements if name == tag]
