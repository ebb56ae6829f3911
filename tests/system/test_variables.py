"""Environment variables that are asked for many times a second."""

from __future__ import annotations

from oracle.system.process import Variable


def test_a_variable_is_seen_as_it_is_now_set_changed_and_taken_away(monkeypatch):
    variable = Variable("ACLNN_ORACLE_TEST_OF_VARIABLES", "")
    assert variable.text() is None
    for text in ("", "1", "wörld"):
        monkeypatch.setenv(variable.name, text)
        assert variable.text() == text
    monkeypatch.delenv(variable.name)
    assert variable.text() is None
