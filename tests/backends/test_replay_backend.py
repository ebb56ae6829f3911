"""The replay backend: it answers from a recording of a device's results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oracle.backends.replay import read_index
from oracle.model.errors import OracleError

LINE = json.dumps({"id": "a", "soc": "ascend910b", "inputs": "", "status": 0, "reason": "", "error": "", "outputs": {}})


@pytest.mark.parametrize(("text", "ids"), [(LINE + "\n" + LINE[:20], ["a"]), (LINE, ["a"]), (LINE + "\n", ["a"])])
def test_the_index_of_a_run_that_died_is_read_up_to_there(tmp_path: Path, text: str, ids: list[str]) -> None:
    (tmp_path / "index-main.jsonl").write_text(text)
    assert list(read_index(tmp_path)) == ids


def test_a_broken_line_before_the_last_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "index-main.jsonl").write_text(LINE[:20] + "\n" + LINE + "\n")
    with pytest.raises(OracleError, match=r"index-main\.jsonl:1: not JSON: Unterminated string starting at character"):
        read_index(tmp_path)
