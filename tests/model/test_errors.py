"""What is told of a name that is none of those known."""

from __future__ import annotations

import pytest

from oracle.model.errors import meant

SOCS = ("ascend910b", "ascend950", "ascend310p")


@pytest.mark.parametrize(
    ("value", "known", "name"),
    [
        ("Ascend910B", SOCS, "ascend910b"),
        ("910b", SOCS, "ascend910b"),
        ("ascend910", SOCS, "ascend910b"),
        ("ascend42", SOCS, ""),  # what all names begin with is no likeness
        ("dimm", ["dim"], "dim"),
        ("axis", ["dim"], ""),
        ("anything", [], ""),
    ],
)
def test_the_closest_name_may_be_meant(value: str, known: tuple[str, ...], name: str) -> None:
    assert meant(value, known) == (f" (did you mean {name!r}?)" if name else "")
