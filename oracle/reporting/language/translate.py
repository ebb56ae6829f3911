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


def N_(text: str) -> str:  # gettext's name for "to be translated where it is shown"
    return text


PHRASES: tuple[str, ...] = (
    # notes about an unusual record (record/reader.py)
    N_("The record has no last line: the run died after # of # planned cases."),
    N_("# lines cannot be read and are left out, the first of them line #."),
    N_("The run ended, but # of # planned cases have no line."),
    N_("Of the # shards of the run only these are here: #."),
    N_("strict: not judged: given function"), N_("not judged: given function"),
    N_("# cases were recorded but only # were planned."), N_("no reason recorded"), N_("(no reason recorded)"),
    # the sizes of a call (explain/conditions.py)
    N_("the type"), N_("the reduced axis"), N_("the last axis"), N_("the first axis"), N_("the number of elements"),
    N_("the number of rows"), N_("the rank"), N_("the number of elements behind the reduced axis"),
    N_("the number of reduced rows"),
    N_("the number of elements before the reduced axis"), N_("the axis counted from the end"), N_("negative"),
    N_("not negative"), N_("positive"), N_("zero"), N_("first"), N_("last"), N_("middle"),
    # the layout of a tensor (model/classes.py)
    N_("in order"), N_("not contiguous"), N_("expanded"), N_("of one element"), N_("along the last axis"),
    N_("along all but the last"), N_("along all but the first"), N_("along all but a middle axis"),
    N_("a strided last axis"), N_("gaps between rows"), N_("axes out of order"), N_("stride 0 outside"),
    N_("stride 0 inside"), N_("stride 0 everywhere"), N_("otherwise"),
    # layers, before a colon
    N_("structure"), N_("standard"), N_("strict"),
    # the places of the bad elements (explain/findings.py)
    N_("all"), N_("the only element"), N_("one element, #"), N_("scattered: # of #"), N_("ignored rows (# of #)"),
    N_("tail from element # of #"), N_("tail of every row from # of # along axis #"), N_("one row: # of #"),
    N_("one index of axis #: # of #"), N_("one contiguous block of rows: # to # of #"),
    N_("one contiguous block of elements: # to # of #"), N_("one contiguous block of indices of axis #: # to # of #"),
    N_("# of every # rows, the first # of #"), N_("# of every # elements, the first # of #"),
    N_("# of every # indices of axis #, the first # of #"), N_("every # row from #"), N_("every # element from #"),
    N_("every # index of axis # from #"), N_("one lane: element # of every #"), N_("whole rows: # of #"),
    # causes
    N_("what the output held before the call is part of the result: it is added to or scaled, not written anew"),
    N_("elements that are to be 0 are not written: what the output held before the call stands there"),
    N_("the same call passes when it is run again: a race, or state across calls"),
    N_("the case passes alone, in a process of its own: state across calls"),
    N_("the smallest case passes alone, in a process of its own: state across calls"),
    N_("NaN is replaced by a number"),
    N_("rows that are to be ignored are not zero: the ignored index is not honoured"),
    N_("NaN where an infinity is due: inf - inf or inf / inf in an intermediate"),
    N_("an infinity has the wrong sign"),
    N_("zero is returned for every element"),
    N_("another array is handed back in the place of the output"),
    N_("the output is removed from the call, or replaced by something that is no array"),
    N_("an input is written to: it is taken for scratch memory"),
    N_("memory before the output is overwritten: an offset is too small, or negative"),
    N_("memory beyond the output is overwritten: a block is stored whole, or gaps are filled"),
    N_("nothing at all is written, or elsewhere"),
    N_("the device refuses a call that is valid"),
    N_("the checks are made in another order, or answer another code"),
    N_("overflow saturates instead of giving infinity"),
    N_("NaN where a number is due: 0/0, inf/inf or inf - inf in an intermediate"), N_("an intermediate overflows"),
    N_("wrong sign"),
    N_("results below the smallest normal float32 are flushed to zero"),
    N_("the division by the element count # is missing"),
    N_("divided by the element count #, which is not asked for"), N_("all wrong by the factor #"),
    N_("elements are in transposed order: strides are not honoured"),
    N_("the right values in the wrong places: strides or offsets are not honoured"),
    N_("the right values in the wrong places: an index is wrong"),
    N_("elements are not written, or are written elsewhere: the output's strides are not honoured"),
    N_("infinities are replaced by zero"),
    N_("zero for every element: the subnormal numbers of an operand are flushed to zero"),
    N_("float32 operands are cut to # fraction bits: digits are lost"),
    N_("a clamp at another constant: some elements are wrong by one factor, #, others by less"),
    # wrong readings and writings, after "as if"
    N_("its first element stood for all"), N_("its first row stood for all"),
    N_("its elements stood in reverse order"), N_("it stood in memory in reverse order"),
    N_("its elements were shifted by one place"), N_("its elements were shifted by one place, to the front"),
    N_("it repeated at the flat index modulo its size"), N_("it were aligned with the leading axes"),
    N_("it were contiguous: its strides are ignored"), N_("its strides were #, not #"),
    N_("it had no offset: # elements too early"), N_("they were contiguous: their strides are ignored"),
    # wrong divisors of a mean
    N_("the size of the output"), N_("axis #"), N_("all but the first axis"), N_("all but the last axis"),
    N_("one too many"), N_("one too few"), N_("the rank"), N_("the number of samples that are not ignored"),
    # rules
    N_("standard mixed"), N_("|actual - value| <= bound"), N_("NaN exactly where the golden is NaN"),
    N_("infinite exactly where the golden is, with its sign"), N_("exact zero where the operator says zero"),
    N_("a number of the type the host rounds to first"),
    N_("status code"), N_("inputs unchanged"), N_("guards untouched"), N_("every element written"),
    N_("output is an array"), N_("shape"), N_("dtype"), N_("a refused call leaves the output untouched"),
    N_("an empty input leaves the output untouched"),
    # reasons
    N_("matched_ratio # (# of #) < #"), N_("# elements of # outside the error bound, the worst # times the bound"),
    N_("# element of # outside the error bound, the worst # times the bound"),
    N_("# elements of # outside the error bound, the worst unbounded"),
    N_("# element of # outside the error bound, the worst unbounded"),
    N_("# elements not so"), N_("# element not so"),
    N_("NaN, inf, -inf or finite differ at # of # positions, first #: golden #, actual #"),
    N_("max_abs_error # at # > max_abs_error_limit #"), N_("# elements above their own max_abs_error_limit"),
    N_("document"), N_("source"), N_("device (instruction documents)"), N_("project (strict bound)"),
    N_("the device's process ended"), N_("exit status #"), N_("its last words"), N_("it closed its pipe"),
    N_("no answer in # s (--timeout-per-case)"), N_("the device's process was ended"),
)  # fmt: skip

SENTENCES: tuple[str, ...] = (
    # operators without a case that ran (record/writer.py)
    N_("{name}: all {n} cases were skipped, nothing was tested: {reason}"), N_("{reason} (and {n} other reasons)"),
    N_("{reason} (and 1 other reason)"),
    N_("The strict layer does not judge {names}: a given function."),
    N_("{names} is read as if {reading}"), N_("{names} are read as if {reading}"),
    N_("{name} is written as if {reading}"),
    N_("{names} is read without its sign"), N_("{names} is read with 0 for NaN"),
    N_("{names} is read with the largest number for infinities"),
    N_("{names} is read with its subnormal numbers flushed to zero"),
    N_("{names} is read with its numbers below {least} flushed to zero"),
    N_("{names} is rounded to {type} when it is read"), N_("{names} has its bits taken for those of {type}"),
    N_("{names} counts as absent"), N_("{names} are exchanged"),
    N_("at the boundary of {names} a comparison takes its other side: >= for >, or the reverse"),
    N_("all wrong by factors from {low} to {high}"),
    N_("all wrong by the factor {times}, as if {reading}"), N_("the attribute {name} is read as {value}"),
    N_("{name} is a factor too many"), N_("{name} is a divisor too many"),
    N_("the mean is divided by {count} ({what}), not by {right}"), N_("the size of {name}"),
    N_("zero where {places}: a share of the work is lost"), N_("NaN where {places}: a share of the work is lost"),
    N_("infinite where {places}: a share of the work is lost"),
    N_("the results of the {count} elements before stand where {places}: a share of the work is lost"),
    N_("elements are not written: a tile, a tail or a core's share of the work is lost ({places})"),
    N_("elements are not written ({places})"),
    N_("zero is written at row * {count} + {name} of ignored rows: other gradients are lost"),
    N_("a check is missing: the device accepts what must be refused with {name}"),
    N_("intermediate results are rounded to {type}"),
    N_("results are not rounded to {type}, the host's type, before the cast to the output's"),
    N_("errors of a few units in the last place: intermediate results are rounded to {type}"),  # of earlier records
    N_("errors as of intermediate results rounded to {type}, or of an approximation of as few digits"),
    N_("float32 results carry only the digits of {type}: they are rounded to it on the way"),
    N_("ties are rounded away from zero when results are stored as {type}, not to even"),
    N_("results are rounded toward zero when they are stored as {type}: digits are cut, not rounded to nearest"),
    N_("results are rounded upwards when they are stored as {type}: digits are cut, not rounded to nearest"),
    N_("{name} or {names}"), N_("{name} and {names}"),
    N_("signal {count} ({value})"), N_("source ({value})"),
    N_("{name} is {value} at every wrong element that is shown"),
    # conditions of failures (explain/conditions.py); a longer sentence comes before its own beginning
    N_("no case shows where between {low} and {high} {subject} begins to matter"),
    N_("{some}, and {others}"),
    N_("{subject} is longer than {least} and no longer than {most} and {rest}"),
    N_("{subject} is longer than {least} and no longer than {most}"),
    N_("{subject} is longer than {least} and {rest}"), N_("{subject} is longer than {least}"),
    N_("{subject} is no longer than {most} and {rest}"), N_("{subject} is no longer than {most}"),
    N_("{subject} is above {least} and at most {most} and {rest}"),
    N_("{subject} is above {least} and at most {most}"), N_("{subject} is above {least} and {rest}"),
    N_("{subject} is above {least}"), N_("{subject} is at most {most} and {rest}"),
    N_("{subject} is at most {most}"), N_("{subject} is no multiple of {step} and {rest}"),
    N_("{subject} is no multiple of {step}"), N_("{subject} is a multiple of {step}"),
    N_("{subject} leaves {left} after blocks of {step}"), N_("leaves {left} after blocks of {step}"),
    N_("no multiple of {step}"), N_("a multiple of {step}"),
    N_("the type is {value}"), N_("the type of {name} is {value}"), N_("the layout of {name} is {value}"),
    N_("the values of {name} are drawn as {value}"), N_("the attribute {name} is {value}"),
    N_("the rank is {value}"), N_("the rank of {name} is {value}"), N_("the rank of {name}"),
    N_("the strides of {name} are {value}"), N_("the form of {name} is {value}"), N_("the offset of {name} is {value}"),
    N_("the offset of {name}"), N_("the sign of {name} is {value}"), N_("the place of the axis is {value}"),
    N_("the lengths of the axes repeat"), N_("the lengths of the axes all differ"),
    N_("{name} is of another type"), N_("{name} is not of another type"),
    N_("the axis is {value}"), N_("the axis counted from the end is {value}"),
    N_("the axis counted from {start} is {value}"),
    N_("{name} is given"), N_("{name} is absent"), N_("{name} is contiguous"), N_("{name} is not contiguous"),
    N_("{name} begins at an offset"), N_("{name} begins at no offset"), N_("{name} has a stride of 0"),
    N_("{name} has no stride of 0"), N_("{name} holds values that are not finite"),
    N_("{name} holds finite values alone"), N_("the data holds values that are not finite"),
    N_("the data holds finite values alone"), N_("{name} is broadcast"), N_("{name} is not broadcast"),
    N_("{name} holds several values and is broadcast"), N_("{name} is not broadcast, or holds one value"),
    N_("{name} has the shape of the first operand"), N_("{name} has another shape than the first operand"),
)  # fmt: skip


DOMAIN = "aclnn-oracle"
# The figures of a phrase: an index, an ordinal, a number that is no part of a word (float32) or of a version, and N,
# which stands for differing numbers.
FIGURE = re.compile(
    r"\[[^\]]*\]|\b\d+(?:st|nd|rd|th)\b|"
    r"(?<![\w.])[-+]?(?:0x[0-9a-fA-F]+|\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|nan|inf|N)(?![\w])"
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
