"""Merged records of shards: one run's record, or a refusal that names the differences or the missing shards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from synthetic import case, header, write

from oracle.cli import main
from oracle.model.errors import OracleError
from oracle.record.reader import read
from oracle.record.writer import merged


@pytest.fixture
def shard(tmp_path):
    """Write shard K/N with a failing case and a passing one, and return its record."""

    def make(text: str, name: str = "", ended: bool = True, cases: int = 2, **changes):
        lines = [header(shard=text, planned=2, **changes)]
        lines += [case(f"softmax_backward/family[{name or text}-{i}]", ("pass", "fail")[i]) for i in range(cases)]
        if ended:
            lines += [{"type": "end", "pass": 1, "fail": cases - 1, "notrun": 2 - cases, "duration_s": 60}]
        path = tmp_path / f"{name or text.replace('/', 'of')}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return read(path)

    return make


def test_all_shards_make_the_record_of_one_run(shard, tmp_path, capsys):
    parts = [shard("2/3"), shard("1/3", started="2026-10-20T09:10:03+00:00"), shard("3/3")]
    path = tmp_path / "whole.jsonl"
    assert main(["merge", *(str(part.path) for part in parts), "-o", str(path)]) == 1  # a case failed
    whole = read(path)
    assert (whole.planned, whole.complete, whole.notes, whole.header.shard) == (6, True, (), "")
    assert (whole.counts["pass"], whole.counts["fail"]) == (3, 3)
    assert whole.by_id == {**parts[0].by_id, **parts[1].by_id, **parts[2].by_id}
    assert whole.header.started == "2026-10-20T09:10:03+00:00"
    assert whole.duration_s == 300  # from the first start to the last end
    assert "6 planned (pass 3, fail 3)" in capsys.readouterr().out
    assert json.loads(path.read_text().splitlines()[-1])["judged"] == sum(part.judged for part in parts)


def test_empty_shards_alone_are_no_run_that_ended_well(tmp_path, capsys):
    """A wrong -k chooses nothing; each shard alone may be empty."""
    parts = [write(tmp_path / f"{k}", [], shard=f"{k}/2", chosen="-k typo") for k in (1, 2)]
    assert main(["merge", *map(str, parts), "-o", str(tmp_path / "whole")]) == 1
    assert "nothing was judged" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--shard 1/2", "--shard=1/2", "--oracle-shard 1/2"])
def test_the_command_of_the_whole_run_has_no_shard(shard, tmp_path, option):
    parts = [shard("1/2", command=f"aclnn-oracle run {option} -q"), shard("2/2")]
    assert merged(parts, tmp_path / "whole.jsonl")[0].header.command == "aclnn-oracle run -q"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "seed: 0 there, 1 here"),
        ({"soc": "ascend950"}, "soc: ascend910b there, ascend950 here"),
        ({"catalogue_sha256": "0" * 64}, "catalogue_sha256: 9c1f"),
        ({"backend": "cpu"}, "backend: torch there, cpu here"),
        ({"layers": ["strict"]}, "layers: structure standard strict there, strict here"),
        ({"chosen": "-k x"}, "chosen: none there, -k x here"),
        ({"versions": {"aclnn-oracle": "0.2.0", "torch": "2.13.0+cpu"}}, "version of aclnn-oracle: 0.1.0 there, 0.2.0"),
        ({"something_new": "7"}, "extra: none there, something_new 7 here"),
    ],
)
def test_records_that_do_not_belong_together_are_refused_with_what_differs(shard, changes, message):
    with pytest.raises(OracleError, match=rf"2of2\.jsonl does not belong to .*1of2\.jsonl: .*{message}"):
        merged([shard("1/2"), shard("2/2", **changes)], Path())


def test_machines_may_have_their_own_python_and_numpy(shard):
    versions = {"aclnn-oracle": "0.1.0", "python": "3.12.1", "numpy": "2.4.0", "torch": "2.13.0+cpu"}
    _, lines = merged([shard("1/2"), shard("2/2", versions=versions)], Path("whole"))
    assert json.loads(next(lines))["versions"]["python"] == "3.11.7, 3.12.1"


def test_what_is_no_shard_or_is_there_twice_is_refused(shard):
    for parts, text in (
        ([shard("1/2"), shard("1/2", name="again")], r"shard 1/2 is there twice: .*1of2\.jsonl and .*again\.jsonl"),
        ([shard("1/2"), shard("", name="whole")], r"whole\.jsonl: the record of a whole run; merge joins"),
        ([shard("1/2"), shard("2/3")], "is shard 2/3, .* shard 1/2"),
    ):
        with pytest.raises(OracleError, match=text):
            merged(parts, Path())
    one, other = shard("1/2", name="same"), shard("2/2")
    (tampered := other.path).write_text(one.path.read_text().replace("1/2", "2/2"))
    with pytest.raises(OracleError, match=r"is in .* and in .*: not shards of one run"):
        merged([one, read(tampered)], Path())


def test_missing_shards_are_named_and_a_part_says_that_it_is_one(shard, tmp_path, capsys):
    parts = [shard("1/6"), shard("5/6")]
    with pytest.raises(OracleError, match="shards 2-4,6 of 6 are missing; --partial merges the others"):
        merged(parts, Path())
    path = tmp_path / "part.jsonl"
    assert main(["merge", "--partial", *(str(part.path) for part in parts), "-o", str(path)]) == 1
    assert read(path).notes == ("Of the 6 shards of the run only these are here: 1,5.",)
    with pytest.raises(OracleError, match=r"part\.jsonl: 1,5/6; merge joins"):
        merged([read(path)], Path())


def test_a_shard_that_died_leaves_its_cases_not_run(shard, tmp_path):
    path = tmp_path / "whole.jsonl"
    made, lines = merged([shard("1/2"), shard("2/2", ended=False, cases=1)], path)
    path.write_text("".join(lines))
    whole = read(path)
    assert made == whole
    assert (whole.complete, whole.planned, whole.counts["notrun"]) == (False, 4, 1)


def test_what_is_unusual_about_a_shard_is_told_with_its_file(shard, tmp_path, capsys):
    died = shard("2/2", ended=False, cases=1)
    assert main(["merge", str(shard("1/2").path), str(died.path), "-o", str(tmp_path / "whole.jsonl")]) == 1
    text = capsys.readouterr().out
    assert f"{died.path}: The record has no last line: the run died after 1 of 2 planned cases." in text
    assert "1of2.jsonl: " not in text


def test_a_shard_that_was_run_again_counts_once(shard, tmp_path, capsys):
    """`merge parts/*.jsonl` also finds the record that a second run of the shard kept."""
    older, *parts = shard("1/2", "1of2.20261129123222"), shard("1/2"), shard("2/2")
    whole = tmp_path / "whole.jsonl"
    assert main(["merge", *(str(part.path) for part in (older, *parts)), "-o", str(whole)]) == 1  # a case failed
    assert f"{older.path}: left out: the shard was run again" in capsys.readouterr().out
    assert read(whole).by_id.keys() == parts[0].by_id.keys() | parts[1].by_id.keys()
    assert main(["merge", str(older.path), str(parts[1].path), "-o", str(whole)]) == 1  # alone it is a shard


@pytest.mark.parametrize("names", [("r.20261129123222.jsonl", "r.jsonl"), ("one", "20261129123222")])
def test_shards_count_whatever_one_machine_called_them(shard, tmp_path, names):
    parts = [shard(text).path.rename(tmp_path / name) for text, name in zip(("1/2", "2/2"), names, strict=True)]
    assert main(["merge", *map(str, parts), "-o", str(tmp_path / "whole")]) == 1  # a case failed
    assert read(tmp_path / "whole").planned == 4


def test_the_output_replaces_an_earlier_record_alone_and_none_of_the_inputs(shard, tmp_path, capsys):
    record, other = shard("1/1").path, tmp_path / "cases.yaml"
    other.write_text("aclnn_oracle: 1\n")
    for path, says in ((record, "is one of the records to join"), (other, f"-o {other}: is there and is no run rec")):
        before = path.read_text()
        assert main(["merge", str(record), "-o", str(path)]) == 2
        assert says in capsys.readouterr().err
        assert path.read_text() == before


def test_a_case_keeps_its_line_the_later_of_two_and_none_that_is_half_written(shard, tmp_path):
    one, other = shard("1/2"), shard("2/2", ended=False)
    with one.path.open() as file:
        header, passed, failed, end = file
    again = passed.replace('"pass"', '"fail"').replace('"worker": "gw0"', '"worker": "gw7", "to_come": [1]')
    one.path.write_text(header + passed + failed + again + end)
    with other.path.open("a") as file:
        file.write(passed.replace(one.cases[0].id, "half")[:-20])
    whole, parts = tmp_path / "whole.jsonl", [read(path, brief=True) for path in (one.path, other.path)]
    made, text = merged(parts, whole)
    lines = list(text)
    assert lines[1:3] == [failed, again]
    whole.write_text("".join(lines))
    assert made == read(whole, brief=True)
    assert read(whole).by_id == {**read(one.path).by_id, **other.by_id}
