"""The texts of reports, in English and in Chinese.

A ``Text`` is a sentence before its translation: its English form and the values for its places. ``str()`` gives the
English; ``CHINESE.say(text)`` looks it up in the gettext catalogue under ``locale/`` (``python tools/messages.py``
keeps the catalogue in step with the sources). An English text of the record (a pattern, a likely cause, a layer's
reason) is a ``Phrase``: it is looked up without its figures.
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

# English sentences in records, for the catalogues: patterns, likely causes, rules and reasons.
#
# In ``PHRASES``, ``#`` stands for a figure, an index or an ordinal. In ``SENTENCES``, a word in braces stands for
# names, types or another sentence; ``{name}`` stands for one name. A sentence in neither list is shown in English.

PHRASES: tuple[str, ...] = (
    # notes about an unusual record (record/reader.py)
    "The record has no last line: the run died after # of # planned cases.",
    "# lines cannot be read and are left out, the first of them line #.",
    "The run ended, but # of # planned cases have no line.", "Of the # shards of the run only these are here: #.",
    "strict: not judged: given function", "not judged: given function",
    "# cases were recorded but only # were planned.", "no reason recorded", "(no reason recorded)",
    # the sizes of a call (explain/conditions.py)
    "the type", "the reduced axis", "the last axis", "the first axis", "the number of elements", "the number of rows",
    "the rank", "the number of elements behind the reduced axis", "the number of reduced rows",
    "the number of elements before the reduced axis", "the axis counted from the end", "negative", "not negative",
    "positive", "zero", "first", "last", "middle",
    # the layout of a tensor (model/classes.py)
    "in order", "not contiguous", "expanded", "of one element", "along the last axis", "along all but the last",
    "along all but the first", "along all but a middle axis", "a strided last axis", "gaps between rows",
    "axes out of order", "stride 0 outside", "stride 0 inside", "stride 0 everywhere", "otherwise",
    # layers, before a colon
    "structure", "standard", "strict",
    # the places of the bad elements (explain/findings.py)
    "all", "the only element", "one element, #", "scattered: # of #", "ignored rows (# of #)",
    "tail from element # of #", "tail of every row from # of # along axis #", "one row: # of #",
    "one index of axis #: # of #", "one contiguous block of rows: # to # of #",
    "one contiguous block of elements: # to # of #", "one contiguous block of indices of axis #: # to # of #",
    "# of every # rows, the first # of #", "# of every # elements, the first # of #",
    "# of every # indices of axis #, the first # of #", "every # row from #", "every # element from #",
    "every # index of axis # from #", "one lane: element # of every #", "whole rows: # of #",
    # causes
    "the output's old content is part of the result: it is added to or scaled, not written anew",
    "elements that are to be 0 are not written: the output's old content stands there",
    "the same call passes when it is run again: a race, or state across calls",
    "the same call gives other results when it is run again: a race, or memory that nobody has written",
    "the case passes alone, in a process of its own: state across calls, or a race",
    "the smallest case passes alone, in a process of its own: state across calls, or a race",
    "NaN is replaced by a number",
    "rows that are to be ignored are not zero: the ignored index is not honoured",
    "NaN where an infinity is due: inf - inf, inf / inf or 0 * inf in an intermediate",
    "an infinity has the wrong sign", "zero is returned for every element",
    "another array is handed back in the place of the output",
    "the output is removed from the call, or replaced by something that is no array",
    "an input is written to: it is taken for scratch memory",
    "memory before the output is overwritten: an offset is too small, or negative",
    "memory beyond the output is overwritten: a block is stored whole, or gaps are filled",
    "nothing at all is written, or elsewhere", "the device refuses a call that is valid",
    "the checks are made in another order, or answer another code", "overflow saturates instead of giving infinity",
    "NaN where a number is due: 0 / 0, inf / inf, inf - inf or 0 * inf, or memory next to an operand",
    "an intermediate overflows, or becomes 0 before a division or a logarithm",
    "wrong sign",
    "the division by the element count # is missing", "divided by the element count #, which is not asked for",
    "all wrong by the factor #", "elements are in transposed order: strides are not honoured",
    "the right values in the wrong places: strides or offsets are not honoured",
    "the right values in the wrong places: an index is wrong",
    "elements are not written, or are written elsewhere: the output's strides are not honoured",
    "infinities are replaced by zero",
    "zero for every element: the subnormal numbers of an operand are flushed to zero",
    "float32 operands are cut to # fraction bits: digits are lost",
    "a clamp at another constant: some elements are wrong by one factor, #, others by less",
    # wrong readings and writings, after "as if"
    "its first element stood for all", "its first row stood for all", "its elements stood in reverse order",
    "it stood in memory in reverse order", "its elements were shifted by one place",
    "its elements were shifted by one place, to the front", "it repeated at the flat index modulo its size",
    "it were aligned with the leading axes", "it were contiguous: its strides are ignored", "its strides were #, not #",
    "it had no offset: # elements too early", "they were contiguous: their strides are ignored",
    # wrong values of an attribute
    "another number", "itself divided by the length of the sum", "itself truncated to an integer",
    "itself without its sign", "itself with the other sign", "itself rounded to float16", "itself rounded to bfloat16",
    "its reciprocal", "itself cut to int32",
    # wrong divisors of a mean
    "the size of the output", "axis #", "all but the first axis", "all but the last axis", "one too many",
    "one too few", "the rank", "the number of samples that are not ignored", "the weights of all samples",
    # rules
    "standard mixed", "|actual - value| <= bound", "NaN exactly where the golden is NaN",
    "infinite exactly where the golden is, with its sign", "exact zero where the operator says zero",
    "a number of the type the host rounds to first", "status code", "inputs unchanged", "guards untouched",
    "every element written", "output is an array", "shape", "dtype", "a refused call leaves the output untouched",
    "a call that computes nothing leaves the output untouched", "bitwise equal on # runs", "run #",
    "a contiguous layout", "a slice of the batch", "a null pointer",
    # reasons
    "matched_ratio # (# of #) < #", "# elements of # outside the error bound, the worst # times the bound",
    "# element of # outside the error bound, the worst # times the bound",
    "# elements of # outside the error bound, the worst unbounded",
    "# element of # outside the error bound, the worst unbounded", "# elements not so", "# element not so",
    "NaN, inf, -inf or finite differ at # of # positions, first #: golden #, actual #",
    "max_abs_error # at # > max_abs_error_limit #", "# elements above their own max_abs_error_limit", "document",
    "source", "device (instruction documents)", "project (strict bound)", "the device's process ended", "exit status #",
    "its last words", "it closed its pipe", "no answer in # s (--timeout-per-case)", "the device's process was ended",
)  # fmt: skip

SENTENCES: tuple[str, ...] = (
    # operators without a case that ran (record/writer.py)
    "{names}: all {n} cases were skipped, nothing was tested: {reason}", "{reason} (and {n} other reasons)",
    "{reason} (and 1 other reason)", "The strict layer does not judge {names}: a given function.",
    "{names} is read as if {reading}", "{names} are read as if {reading}", "{name} is written as if {reading}",
    "{names} is read without its sign", "{names} is read with 0 for NaN",
    "{names} holds a NaN that does not reach the result", "a NaN of {name} is passed on where a number is due",
    "{name} has the results of {other}",
    "{names} is read with the largest number for infinities",
    "{names} is read with its subnormal numbers flushed to zero",
    "{names} is read with its numbers below {least} flushed to zero", "{names} is rounded to {type} when it is read",
    "{names} has its bits taken for those of {type}", "{names} counts as absent", "{names} are exchanged",
    "at the boundary of {names} a comparison takes its other side: >= for >, or the reverse",
    "all wrong by factors from {low} to {high}", "all wrong by the factor {times}, as if {reading}",
    "the attribute {name} is read as {value}",
    "the attribute {name} is added to the root, not to the number under it",
    "a step of the formula is wrong: {old} becomes {new} in {rule}",
    "a step of the formula is wrong: {old} becomes {new}",
    "a step of the formula is wrong: {what}",
    "the end of a sum over the reduced axis is lost: its last {count} of {all} terms",
    "the first of {all} terms of a sum over the reduced axis is lost",
    "a mean is divided by one less than the element count {right}",
    "a mean is not divided by the element count {right}",
    "a mean is divided by the padded element count {count}, not by {right}",
    "terms of a sum over the reduced axis take part twice: the last {count} of {all} terms are a block",
    "the terms of a sum over the reduced axis are rounded to {type}",
    "a sum over the reduced axis is rounded to {type} at every step",
    "zeros behind each row take part in a reduction: {count} behind {right} elements",
    "elements of the next row take part in a reduction: {count} behind {right} elements",
    "{name} is a factor too many", "{name} is a divisor too many",
    "the mean is divided by {count} ({what}), not by {right}", "the size of {name}",
    "{value} / {other}",
    "zero where {places}: a share of the work is lost", "NaN where {places}: a share of the work is lost",
    "infinite where {places}: a share of the work is lost",
    "elements have the results of the elements {count} places before them: a share of the work is lost ({places})",
    "elements are not written: a tile, a tail or a core's share of the work is lost ({places})",
    "elements are not written ({places})",
    "zero is written at row * {count} + {name} of ignored rows: other gradients are lost",
    "a check is missing: the device accepts what must be refused with {name}",
    "results below the smallest normal {type} are flushed to zero", "intermediate results are rounded to {type}",
    "results are not rounded to {type}, the host's type, before the cast to the output's",
    "errors of a few units in the last place: intermediate results are rounded to {type}",  # of earlier records
    "errors as of intermediate results rounded to {type}, or of an approximation of as few digits",
    "float32 results carry only the digits of {type}: they are rounded to it on the way",
    "float16 results carry only the digits of bfloat16: they are rounded to it on the way",
    "bfloat16 results have only the range of float16: they are rounded to it on the way",
    "ties are rounded away from zero when results are stored as {type}, not to even",
    "results are rounded toward zero when they are stored as {type}: digits are cut, not rounded to nearest",
    "results are rounded upwards when they are stored as {type}: digits are cut, not rounded to nearest",
    "{name} or {names}", "{name} and {names}", "signal {count} ({value})", "source ({value})",
    "{name} is {value} at every wrong element that is shown", "wrong where {limit}",
    "scattered: {count} of {total}, where {limit}", "the magnitude of {name}",
    # reasons of the structure layer (explain/structure.py, case/judge.py, case/execute.py)
    "the call leaves {name} untouched", "{name} was written", "the device modified {names}",
    "expected {status}, the device answered {answer}", "{name} is {kind}, not a NumPy array",
    "{name} has dtype {type}, expected {other}", "{name} has shape {shape}, expected {other}",
    "{count} elements outside {name} were written, all before its first element",
    "{count} elements outside {name} were written", "{count} of {total} elements of {name} were not written",
    "{what} gives the same bits", "{what}: {count} of {total} elements of {name} differ",
    "{what}: {count} of {total} elements differ", "{what}: the device answered {answer} with another output",
    # conditions of failures (explain/conditions.py); a longer sentence comes before its own beginning
    "no case shows where between {low} and {high} {subject} begins to matter", "{some}, and {others}",
    "{subject} is longer than {least} and no longer than {most} and {rest}",
    "{subject} is longer than {least} and no longer than {most}", "{subject} is longer than {least} and {rest}",
    "{subject} is longer than {least}", "{subject} is no longer than {most} and {rest}",
    "{subject} is no longer than {most}", "{subject} is above {least} and at most {most} and {rest}",
    "{subject} is above {least} and at most {most}", "{subject} is above {least} and {rest}",
    "{subject} is above {least}", "{subject} is at least {least}",
    "{subject} is at most {most} and {rest}", "{subject} is at most {most}",
    "{subject} is no multiple of {step} and {rest}", "{subject} is no multiple of {step}",
    "{subject} is a multiple of {step}", "{subject} leaves {left} after blocks of {step}",
    "leaves {left} after blocks of {step}", "no multiple of {step}", "a multiple of {step}", "the type is {value}",
    "the type of {name} is {value}", "the layout of {name} is {value}", "the values of {name} are drawn as {value}",
    "the attribute {name} is {value}", "the attribute {name}", "the rank is {value}", "the rank of {name} is {value}",
    "the rank of {name}",
    "the strides of {name} are {value}", "the form of {name} is {value}", "the offset of {name} is {value}",
    "the offset of {name}", "the sign of {name} is {value}", "the place of the axis is {value}",
    "the lengths of the axes repeat", "the lengths of the axes all differ", "{name} is of another type",
    "{name} is not of another type", "the axis is {value}", "the axis counted from the end is {value}",
    "the axis counted from {start} is {value}", "{name} is given", "{name} is absent", "{name} is contiguous",
    "{name} is not contiguous", "{name} begins at an offset", "{name} begins at no offset",
    "{name} has a strided last axis", "{name} has gaps between its rows", "{name} has its axes out of order",
    "{name} has a stride of 0 along its first axis", "{name} has a stride of 0 along its last axis",
    "{name} has a stride of 0 along every axis", "{name} has strides of 0 along some axes",
    "{name} has the full shape and is contiguous", "{name} has the full shape and is not contiguous",
    "{name} has the full shape and a stride of 0", "{name} has one element",
    "{name} is broadcast along all axes but the last", "{name} is broadcast along the last axis alone",
    "{name} is broadcast along the first axis alone", "{name} is broadcast along one middle axis",
    "{name} is broadcast along several axes", "{name} has a stride of 0",
    "{name} has no stride of 0", "{name} holds values that are not finite", "{name} holds finite values alone",
    "the data holds values that are not finite", "the data holds finite values alone", "{name} is broadcast",
    "{name} is not broadcast", "{name} holds several values and is broadcast",
    "{name} is not broadcast, or holds one value", "{name} has the shape of the first operand",
    "{name} has another shape than the first operand",
)  # fmt: skip


DOMAIN = "aclnn-oracle"
LETTERS = "NMLK"  # they stand for differing numbers
# The figures of a phrase: an index, an ordinal, a number that is no part of a word (float32) or of a version, a letter.
FIGURE = re.compile(
    r"\[[^\]]*\]|\b\d+(?:st|nd|rd|th)\b|"
    r"(?<![\w.])[-+]?(?:0x[0-9a-fA-F]+|\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|nan|inf|[K-N])(?![\w])"
)

NAME = r"[A-Za-z_]\w*"
FIGURES = ("low", "high", "least", "most", "step", "left")  # places of sentences that contain a figure
PLACE = 10**15  # PLACE + k stands for figure k of a phrase


class Text:
    """A sentence with ``{name}`` places; with ``plural`` and ``n``, it has a singular and a plural form."""

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
        """Fill the places of a form of this sentence, all in the same language."""
        if not self.params:
            return form
        return form.format(**{name: language.word(value) for name, value in self.params.items()})


class Listing(Text):
    """A list of texts, separated by commas."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[object]) -> None:
        super().__init__("")
        self.parts = parts


class Phrase(Text):
    """An English text of the record; a catalogue may have a translation of it without its figures."""

    __slots__ = ()


def _(message: str, /, **params: object) -> Text:
    """Mark a sentence for translation and return it."""
    return Text(message, params=params)


def _n(singular: str, plural: str, n: int, /, **params: object) -> Text:
    """Mark a sentence about a number of things and return it; ``{n}`` is the number."""
    return Text(singular, plural, n, params)


@lru_cache(maxsize=20_000)
def shape(text: str) -> str:
    """Return a text with ``#`` for every figure."""
    return FIGURE.sub("#", text)


def _pattern(sentence: str) -> re.Pattern[str]:
    """Return a pattern that finds a sentence of the record: any text fits its places, in ``{name}`` only one name."""
    parts = [(re.escape(before), place) for before, place, _, _ in Formatter().parse(sentence)]
    forms = {"name": NAME, **dict.fromkeys(FIGURES, r"\S+")}
    places = {place: rf"(?P<{place}>{forms.get(place, '(?:(?!; ).)+')})" for _, place in parts if place}
    return re.compile("".join(before + places.get(place or "", "") for before, place in parts))


@dataclass(frozen=True)
class Language:
    """A language of reports."""

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

        return {} if self.code == "en" else {shape(text): self._catalogue.gettext(text) for text in PHRASES}

    def say(self, text: Text | str) -> str:
        """Return a text in this language; a plain string is returned unchanged."""
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
        """Return the value for a place: a text in this language, an integer with commas, or a string."""
        if isinstance(value, Text):
            return self.say(value)
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)

    @cached_property
    def sentences(self) -> list[tuple[re.Pattern[str], str]]:
        """The record's own sentences about names, as patterns with their translations."""

        return [] if self.code == "en" else [(_pattern(text), self._catalogue.gettext(text)) for text in SENTENCES]

    @lru_cache(maxsize=4096)  # noqa: B019  a part occurs in every larger part: exponentially often
    def phrase(self, text: str) -> str:
        """Translate a text of the record, by parts if the whole is unknown; "" if no part is known."""
        form = self.phrases.get(shape(text))
        if form is not None:
            return form.format(*FIGURE.findall(text))
        for pattern, form in self.sentences:
            if result := pattern.fullmatch(text):
                return form.format(**{name: self.phrase(part) or part for name, part in result.groupdict().items()})
        for mark, separator in (("; ", self.semicolon), (": ", self.colon)):
            first, marked, rest = text.partition(mark)
            if marked and (halves := (self.phrase(first), self.phrase(rest))) != ("", ""):
                return (halves[0] or first) + separator + (halves[1] or rest)
        return ""

    @lru_cache(maxsize=4096)  # noqa: B019  as above
    def form(self, text: str) -> str | None:
        """Translate a whole sentence of the record, with ``{0}`` for its first figure, for a page's script."""
        form = self.phrases.get(shape(text))
        if form is not None or not any(pattern.fullmatch(text) for pattern, _ in self.sentences):
            return form
        places = count(PLACE)
        message = self.phrase(FIGURE.sub(lambda _: str(next(places)), text))
        return re.sub(r"10{12}(\d{3})", lambda place: f"{{{int(place[1])}}}", message)


ENGLISH = Language("en", "en", "English", ", ", ": ", "; ")
CHINESE = Language("zh", "zh-CN", "中文", "，", "：", "；")
LANGUAGES = {language.code: language for language in (ENGLISH, CHINESE)}
