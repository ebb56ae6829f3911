"""The words of a choice of cases: a word that can choose no case is refused with what there is."""

from __future__ import annotations

import pytest

from oracle.explain.where import Where
from oracle.model.errors import OracleError


@pytest.mark.parametrize(("words", "says"), [
    ("dtyp:float16", "unknown name 'dtyp' (did you mean 'dtype'?)"),
    ("dtype:float128", "unknown dtype 'float128'"),
    ("dtype=float", "unknown dtype 'float'"),
    ("status:fail", "only the cases of a record have a status"),
    ("rank>two", "'two' is no number"),
    ("rank=", "has no value after ="),
    ("'open", "No closing quotation"),
])  # fmt: skip
def test_a_wrong_word_says_what_there_is(words: str, says: str) -> None:
    with pytest.raises(OracleError) as refused:
        Where.of(words)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "words", ["dtype:float", "dtype:float16,bfloat16", "dtype!=float16", "softmax", "self.layout=strided"]
)
def test_a_word_that_can_choose_a_case_is_taken(words: str) -> None:
    assert Where.of(words).words
