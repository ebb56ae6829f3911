"""What reports say, in English and in Chinese.

A ``Text`` is a sentence that has not been put into a language yet: its English form and what goes into its places.
``str()`` gives the English; ``CHINESE.say(text)`` looks it up in the gettext catalogue under ``locale/``
(``python tools/messages.py`` keeps that in step with the sources). What the record itself says in English (a pattern, a
likely cause, a layer's reason) is a ``Phrase``: it is looked up with its figures taken out.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from itertools import count
from string import Formatter

DOMAIN = "aclnn-oracle"
# What a phrase leaves out: an index, an ordinal, a number that is no part of a word (float32) or of a version, and the
# N that stands for numbers that differ.
FIGURE = re.compile(
    r"\[[^\]]*\]|\b\d+(?:st|nd|rd|th)\b|"
    r"(?<![\w.])[-+]?(?:0x[0-9a-fA-F]+|\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|nan|inf|N)(?![\w])"
)

NAME = r"[A-Za-z_]\w*"
FIGURES = ("low", "high", "least", "most", "step", "left")  # places of sentences in which a figure stands
PLACE = 10**15  # and above: figures that stand for the first figure of a phrase, the second ...


class Text:
    """A sentence with ``{name}`` places; with ``plural`` and ``n``, one form for one and one for many."""

    __slots__ = ("message", "n", "params", "plural")

    def __init__(
        self, message: str, plural: str = "", n: int | None = None, params: Mapping[str, object] | None = None
    ) -> None:
        self.message, self.plural, self.n = message, plural, n
        self.params = {**({} if n is None else {"n": n}), **(params or {})}

    def __str__(self) -> str:
        return ENGLISH.say(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {str(self)!r}>"

    def put(self, form: str, language: Language) -> str:
        """Fill the places of a form of this sentence, each in the same language."""
        if not self.params:
            return form
        return form.format(**{name: language.word(value) for name, value in self.params.items()})


class Listing(Text):
    """Several texts one after the other."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[object]) -> None:
        super().__init__("")
        self.parts = parts


class Phrase(Text):
    """A text of the record, which is English; a catalogue may know the sentence with its figures taken out."""

    __slots__ = ()


def _(message: str, /, **params: object) -> Text:
    """Mark and make a sentence."""
    return Text(message, params=params)


def _n(singular: str, plural: str, n: int, /, **params: object) -> Text:
    """Mark and make a sentence about a number of things; ``{n}`` is the number."""
    return Text(singular, plural, n, params)


@lru_cache(maxsize=20_000)
def shape(text: str) -> str:
    """A text with ``#`` for every figure."""
    return FIGURE.sub("#", text)


def _pattern(sentence: str) -> re.Pattern[str]:
    """What finds a sentence of the record: anything may stand in its places, one name alone in ``{name}``."""
    parts = [(re.escape(before), place) for before, place, _, _ in Formatter().parse(sentence)]
    forms = {"name": NAME, **dict.fromkeys(FIGURES, r"\S+")}
    places = {place: rf"(?P<{place}>{forms.get(place, '(?:(?!; ).)+')})" for _, place in parts if place}
    return re.compile("".join(before + places.get(place or "", "") for before, place in parts))


@dataclass(frozen=True)
class Language:
    """A language reports can be written in."""

    code: str
    tag: str  # of HTML's lang attribute
    name: str  # in the language itself
    comma: str
    colon: str
    semicolon: str

    @cached_property
    def _catalogue(self) -> gettext.NullTranslations:
        if self.code == "en":
            return gettext.NullTranslations()
        with resources.as_file(resources.files("oracle.reporting") / "locale") as folder:
            return gettext.translation(DOMAIN, str(folder), [self.code])

    @cached_property
    def phrases(self) -> Mapping[str, str]:
        """Translations of the record's own phrases, by their shape; ``{0}`` is the first figure."""
        from .phrases import PHRASES

        return {} if self.code == "en" else {shape(text): self._catalogue.gettext(text) for text in PHRASES}

    def say(self, text: Text | str) -> str:
        """A text in this language; a plain string is taken as it is."""
        if isinstance(text, str):
            return text
        if isinstance(text, Listing):
            return self.comma.join(self.word(part) for part in text.parts)
        if isinstance(text, Phrase):
            return self.phrase(text.message) or text.message
        if text.n is None:
            return text.put(self._catalogue.gettext(text.message), self)
        return text.put(self._catalogue.ngettext(text.message, text.plural, text.n), self)

    def word(self, value: object) -> str:
        """What goes into a place: a text in this language, a whole number with its thousands marked, or a string."""
        if isinstance(value, Text):
            return self.say(value)
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)

    @cached_property
    def sentences(self) -> list[tuple[re.Pattern[str], str]]:
        """The record's own sentences about names, as patterns, and their translations."""
        from .phrases import SENTENCES

        return [] if self.code == "en" else [(_pattern(text), self._catalogue.gettext(text)) for text in SENTENCES]

    @lru_cache(maxsize=4096)  # noqa: B019  a part is met again in every larger one: exponentially often
    def phrase(self, text: str) -> str:
        """Translate what a record says, by parts where the whole is not known; "" where nothing of it is."""
        form = self.phrases.get(shape(text))
        if form is not None:
            return form.format(*FIGURE.findall(text))
        for pattern, form in self.sentences:
            if found := pattern.fullmatch(text):
                return form.format(**{name: self.phrase(part) or part for name, part in found.groupdict().items()})
        for mark, separator in (("; ", self.semicolon), (": ", self.colon)):
            first, marked, rest = text.partition(mark)
            if marked and (told := (self.phrase(first), self.phrase(rest))) != ("", ""):
                return (told[0] or first) + separator + (told[1] or rest)
        return ""

    @lru_cache(maxsize=4096)  # noqa: B019  as above
    def form(self, text: str) -> str | None:
        """A whole sentence of the record translated, with ``{0}`` for its first figure, as a page's script needs it."""
        form = self.phrases.get(shape(text))
        if form is not None or not any(pattern.fullmatch(text) for pattern, _ in self.sentences):
            return form
        places = count(PLACE)
        told = self.phrase(FIGURE.sub(lambda _: str(next(places)), text))
        return re.sub(r"10{12}(\d{3})", lambda place: f"{{{int(place[1])}}}", told)


ENGLISH = Language("en", "en", "English", ", ", ": ", "; ")
CHINESE = Language("zh", "zh-CN", "中文", "，", "：", "；")
LANGUAGES = {language.code: language for language in (ENGLISH, CHINESE)}
