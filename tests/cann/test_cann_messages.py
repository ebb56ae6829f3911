"""The new part of aclGetRecentErrMsg: the runtime prepends messages, never clears them, and may cut off the end."""

from __future__ import annotations

import threading

from hypothesis import given, strategies as st

from oracle.cann.abi import LIMIT, Messages, new_part

line = st.text(st.characters(codec="ascii", exclude_categories=["C"]), min_size=1, max_size=12).map(lambda s: s + "\n")


@given(st.lists(line, max_size=6).map("".join), st.lists(line, max_size=6).map("".join))
def test_what_was_prepended_is_what_is_new(new, old):
    assert new_part(new + old, old) == new


@given(st.lists(line, min_size=1, max_size=3).map("".join), st.integers(1, 40))
def test_also_where_the_old_text_lost_its_end(new, kept):
    old = "".join(f"EZ1001: number {i}\n" for i in range(9))
    assert new_part(new + old[:kept], old) == new


@given(*[st.lists(line, max_size=4).map("".join)] * 2, st.lists(line, min_size=1, max_size=4).map("".join))
def test_what_a_fault_appends_is_new_too(new, appended, old):
    assert sorted(new_part(new + old + appended, old)) == sorted(new + appended)


def test_a_refusal_before_and_a_fault_behind_the_old_text():
    refused, fault, old = "EZ1001: new\n", "EE9999: the kernel faulted\n", "EZ1001: old\n"
    assert new_part(refused + old + fault, old) == refused + fault
    assert new_part(old + fault, old) == fault


def test_a_thread_s_messages_are_its_own_and_on_one_line():
    messages = Messages()
    assert messages.latest("EZ1001: one\n  [trace]\n") == "EZ1001: one; [trace]"
    assert messages.latest("EZ1001: two\nEZ1001: one\n  [trace]\n") == "EZ1001: two"
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append(messages.latest("EZ1001: one\n")))
    thread.start()
    thread.join()
    assert seen == ["EZ1001: one"]
    assert messages.latest("") == ""
    assert len(messages.latest("x" * 3 * LIMIT)) == LIMIT
