"""A page in two languages: every text stands in the page's own language, the script has the other one.

``<i-t>`` marks a text to exchange, ``data-t`` names the attributes of an element to exchange. The table from one
language to the other is gathered while the page is rendered, so it holds exactly what the page says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from markupsafe import Markup, escape

from .translate import CHINESE, ENGLISH, Language, Phrase, Text, shape


class Bilingual:
    """Renders texts in one language and remembers them in the other. One per page."""

    def __init__(self, base: Language) -> None:
        self.base, self.other = base, CHINESE if base is ENGLISH else ENGLISH
        self.swap: dict[str, str] = {}
        self.phrases: dict[str, str] = {}

    def pair(self, text: Text | str) -> tuple[str, str | None]:
        """A text here, and in the other language: None where the table tells it."""
        here, there = self.base.say(text), self.other.say(text)
        if isinstance(text, Phrase):
            self._know(text)
            return here, there if self.base is CHINESE and here != there else None
        if here == there or self.swap.setdefault(here, there) == there:
            return here, None
        return here, there  # two English texts with one Chinese: this one says itself what the other is

    def _know(self, phrase: Phrase) -> None:
        """Keep the forms that the script needs for this phrase and its parts."""
        for part in sorted(_parts(phrase.message)):  # the same page from the same record
            form = CHINESE.form(part)
            if form is not None:
                self.phrases[shape(part)] = form

    def t(self, message: str | Text, /, **params: object) -> Markup:
        """A text that the language switch exchanges."""
        text = Text(message, params=params) if isinstance(message, str) else message
        here, there = self.pair(text)
        if here == self.other.say(text):
            return escape(here)
        kept = Markup(' o="{}"').format(there) if there is not None else Markup("")
        kind = Markup(" p") if isinstance(text, Phrase) else Markup("")
        return Markup("<i-t{}{}>{}</i-t>").format(kind, kept, here)

    def tn(self, singular: str, plural: str, n: int, /, **params: object) -> Markup:
        """A text about a number of things."""
        return self.t(Text(singular, plural, n, params))

    def p(self, text: str) -> Markup:
        """A sentence of the record."""
        return self.t(Phrase(text))

    def ta(self, attribute: str, message: str | Text, /, **params: object) -> Markup:
        """An attribute that the language switch exchanges, with its name."""
        here, _ = self.pair(Text(message, params=params) if isinstance(message, str) else message)
        return Markup('{0}="{1}" data-t="{0}"').format(attribute, here)

    def for_script(self, texts: Iterable[Text]) -> dict[str, Any]:
        """What the script needs: this page's language, its texts in the other, the script's own and the record's."""
        words = {text.message: CHINESE.say(text) for text in texts}
        return {"base": self.base.code, "swap": self.swap, "words": words, "phrases": self.phrases}

    def functions(self) -> dict[str, Callable[..., Markup]]:
        """Return what templates call, by name."""
        return {"t": self.t, "tn": self.tn, "p": self.p, "ta": self.ta}


def _parts(text: str) -> set[str]:
    """A phrase and what it is made of, as Language.phrase takes it apart."""
    found: set[str] = set()
    left = [text]
    while left:
        part = left.pop()
        if part not in found:  # many ways lead to one part: without this a reason of forty took for ever
            found.add(part)
            for mark in ("; ", ": "):
                first, separator, rest = part.partition(mark)
                left += [first, rest] if separator else []
    return found
