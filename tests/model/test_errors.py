"""Parts of error messages: suggested names, and foreign text, limited in length and harmless to a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from oracle.model.errors import LONGEST, bounded, suggestion, unknown

SOCS = ("ascend910b", "ascend950", "ascend310p")


@pytest.mark.parametrize(
    ("value", "known", "name"),
    [
        ("Ascend910B", SOCS, "ascend910b"),
        ("910b", SOCS, "ascend910b"),
        ("ascend910", SOCS, "ascend910b"),
        ("ascend42", SOCS, ""),  # a prefix common to all names makes no suggestion
        ("dimm", ["dim"], "dim"),
        ("axis", ["dim"], ""),
        ("anything", [], ""),
    ],
)
def test_the_closest_name_may_be_meant(value: str, known: tuple[str, ...], name: str) -> None:
    assert suggestion(value, known) == (f" (did you mean {name!r}?)" if name else "")


def test_an_empty_list_of_known_names_is_said() -> None:
    assert str(unknown("attribute of aclnnExp", "dim", ())) == "unknown attribute of aclnnExp 'dim'; known: none"


def test_escape_sequences_and_nuls_are_shown_as_text() -> None:
    assert bounded("\x1b[31mred\x1b[0m\x00\r\x9b2J") == r"\x1b[31mred\x1b[0m\x00\x0d\x9b2J"
    assert bounded("half \udc80, turned \u202e") == r"half \udc80, turned \u202e"
    assert bounded("two lines\n\tand a tab, 好") == "two lines\n\tand a tab, 好"


def test_the_rest_of_a_long_text_is_counted() -> None:
    assert bounded("a" * LONGEST) == "a" * LONGEST
    assert bounded("a" * (31 << 20)) == "a" * LONGEST + f" ... ({(31 << 20) - LONGEST:,} more characters)"


@given(st.text(st.characters(codec=None), max_size=60), st.integers(0, 40))
def test_what_is_kept_fits_and_nothing_is_lost_uncounted(text: str, longest: int) -> None:
    shown = bounded(text, longest)
    kept = shown[: shown.rindex(" ... (")] if shown.endswith(" more characters)") else shown
    assert len(kept.encode()) <= longest
    assert all(c.isprintable() or c in "\n\t" or ord(c) >= 0xA0 for c in kept)
