"""The words of a choice of cases: a word that can choose no case is refused with what there is."""

from __future__ import annotations

import pytest

from oracle.explain.where import Where
from oracle.model.errors import OracleError
from oracle.operators import OPERATORS


@pytest.mark.parametrize(("words", "says"), [
    ("dtyp:float16", "unknown name 'dtyp' (did you mean 'dtype'?)"),
    ("dtype:float128", "unknown dtype 'float128'"),
    ("dtype=float", "unknown dtype 'float'"),
    ("status:fail", "only the cases of a record have a status"),
    ("dtype!=float128", "unknown dtype 'float128'"),
    ("rank>two", "'two' is no number"),
    ("rank!=two", "'two' is no number"),
    ("dim==0", "is no comparison; write =, !=, <, <=, >, >="),
    ("rank=>2", "is no comparison; write =, !=, <, <=, >, >="),
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


@pytest.mark.parametrize("name", ["softmax_backward", "aclnnSoftmaxBackward", "ACLNNsoftmaxBACKWARD"])
def test_an_operator_is_equal_to_one_of_its_names_only(name: str) -> None:
    names = {op.name: op.slug for op in OPERATORS.values() if "softmax" in op.slug}
    chosen = {how: [op for op in names if Where.of(f"op{how}{name}").may_be_of(op, names[op])] for how in ("=", "!=")}
    assert chosen["="] == ["aclnnSoftmaxBackward"]
    assert chosen["!="] == [op for op in names if op != "aclnnSoftmaxBackward"]
