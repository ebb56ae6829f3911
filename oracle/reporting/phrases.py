"""Sentences that records hold in English, for the catalogues: patterns, likely causes, rules and reasons.

``#`` stands for a figure, an index or an ordinal. A sentence that is not here is shown in English; nothing is lost.
"""

from __future__ import annotations


def N_(text: str) -> str:  # gettext's name for "to be translated where it is shown"
    return text


PHRASES: tuple[str, ...] = (
    # what is unusual about a record (record/reader.py)
    N_("The record has no last line: the run died after # of # planned cases."),
    N_("# lines cannot be read and are left out, the first of them line #."),
    N_("The run ended, but # of # planned cases have no line."),
    N_("Of the # shards of the run only # is here."),
    N_("# cases were recorded but only # were planned."), N_("no reason recorded"), N_("(no reason recorded)"),
    # layers, as they stand before a colon
    N_("structure"), N_("standard"), N_("strict"),
    # where the bad elements lie (runner/pattern.py)
    N_("all"), N_("the only element"), N_("one element, #"), N_("scattered: # of #"), N_("ignored rows (# of #)"),
    N_("tail from element # of #"), N_("tail of every row from # of # along axis #"), N_("one row: # of #"),
    N_("one index of axis #: # of #"), N_("one contiguous block of rows: # to # of #"),
    N_("one contiguous block of elements: # to # of #"), N_("every # row from #"), N_("every # element from #"),
    N_("every # index of axis # from #"), N_("one lane: element # of every #"), N_("whole rows: # of #"),
    # what would explain them
    N_("what the output held before the call is part of the result: it is added to or scaled, not written anew"),
    N_("elements that are to be 0 are not written: what the output held before the call stands there"),
    N_("elements are not written (scattered: # of #)"),
    N_("errors as of intermediate results rounded to float16, or of an approximation of as few digits"),
    N_("errors as of intermediate results rounded to bfloat16, or of an approximation of as few digits"),
    N_("the same call passes when it is run again: a race, or state across calls"),
    N_("the case passes alone, in a process of its own: state across calls"),
    N_("NaN is replaced by a number"),
    N_("rows that are to be ignored are not zero: the ignored index is not honoured"),
    N_("NaN where an infinity is due: inf - inf or inf / inf in an intermediate"),
    N_("an infinity has the wrong sign"),
    N_("zero is returned for every element"),
    N_("errors of a few units in the last place: intermediate results are rounded to float16"),
    N_("errors of a few units in the last place: intermediate results are rounded to bfloat16"),
    N_("float32 results carry only the digits of bfloat16: they are rounded to it on the way"),
    N_("float32 results carry only the digits of float16: they are rounded to it on the way"),
    N_("another array is handed back in the place of the output"),
    N_("an input is written to: it is taken for scratch memory"),
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
    # rules
    N_("standard mixed"), N_("|actual - value| <= bound"), N_("NaN exactly where the golden is NaN"),
    N_("infinite exactly where the golden is, with its sign"), N_("exact zero where the operator says zero"),
    N_("a number of the type the host rounds to first"),
    N_("status code"), N_("inputs unchanged"), N_("guards untouched"), N_("every element written"),
    N_("output is an array"), N_("a refused call leaves the output untouched"),
    N_("an empty input leaves the output untouched"),
    # reasons
    N_("matched_ratio # (# of #) < #"), N_("# elements of # outside the error bound, the worst # times the bound"),
    N_("# element of # outside the error bound, the worst # times the bound"),
    N_("# elements of # outside the error bound, the worst unbounded"),
    N_("# element of # outside the error bound, the worst unbounded"),
    N_("# elements not so"), N_("# element not so"),
    N_("NaN, inf, -inf or finite differ at # of # positions, first #: golden #, actual #"),
    N_("max_abs_error # at # > max_abs_error_limit #"), N_("# elements above their own max_abs_error_limit"),
)  # fmt: skip
