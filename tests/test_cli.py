"""The command: run, help, and one clear message with exit status 2 for bad input."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import processes
import pytest
from ordinary import in_full_alone
from synthetic import case, write

from oracle import OracleError, cli
from oracle.catalogue import default_dir
from oracle.commands.run import _free_name, _link, _without_ids
from oracle.settings.settings import Settings

CASE = "log_sigmoid_backward/first_look[float32-6x35-buffer]"
GELU = str(default_dir() / "gelu.yaml")
LONG = 300 * "x"  # no file can have this name: the system refuses even the question whether it exists


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_run_leaves_a_report_and_a_record_where_it_runs(tmp_path):
    done = processes.oracle("run", "--tier", "smoke", "-k", "log_sigmoid", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Total Task: " in done.stdout
    assert "warning" not in done.stdout.lower()
    written = {p.name for p in (tmp_path / "reports").iterdir()} - {"latest.html", "latest.jsonl"}
    (report,) = (name for name in written if name.endswith(".html"))
    assert re.fullmatch(r"\d{8}-\d{6}-\d{6}-cpu-ascend910b\.html", report)
    assert written == {report, report.replace(".html", ".jsonl")}
    assert (tmp_path / "reports/latest.html").resolve().name == report
    header = (tmp_path / "reports/latest.jsonl").read_text().partition("\n")[0]
    assert '"command":"aclnn-oracle run --tier smoke -k log_sigmoid -q"' in header
    assert not list(default_dir().glob(".pytest_cache"))


@in_full_alone
def test_latest_leads_to_what_the_last_run_wrote_wherever_that_is_and_a_refused_one_wrote_nothing(tmp_path):
    words = ("run", "--op", "tanh_backward", "--tier", "smoke", "-q")
    reports = tmp_path / "reports"
    assert processes.oracle(*words, "-k", "first_look", cwd=tmp_path).returncode == 0
    first = (reports / "latest.jsonl").resolve()
    assert processes.oracle(*words, "-k", "first_look", "--record", "other/second.jsonl", cwd=tmp_path).returncode == 0
    second = (reports / "latest.html").resolve()
    assert second != first.with_suffix(".html")
    refused = processes.oracle(*words, "--resume", first, cwd=tmp_path)
    assert refused.returncode == 2
    assert "not the same run" in refused.stderr
    assert (reports / "latest.html").resolve() == second
    assert (reports / "latest.jsonl").resolve() == tmp_path / "other/second.jsonl"


@pytest.mark.parametrize("links", [True, False])
def test_latest_never_writes_into_what_it_led_to(links, tmp_path, monkeypatch):
    """Another run's latest.jsonl may appear as a link at any moment: a new link replaces it in one step."""
    if not links:
        monkeypatch.setattr(Path, "symlink_to", lambda *_: (_ for _ in ()).throw(OSError("no links here")))
    for name in ("theirs.jsonl", "ours.jsonl"):
        (tmp_path / name).write_text(name)
    os.symlink("theirs.jsonl", tmp_path / "latest.jsonl")  # noqa: PTH211  Path.symlink_to may be replaced here
    _link(tmp_path, {"latest.jsonl": tmp_path / "ours.jsonl"})
    assert (tmp_path / "theirs.jsonl").read_text() == "theirs.jsonl"
    assert (tmp_path / "latest.jsonl").read_text() == "ours.jsonl"
    assert (tmp_path / "latest.jsonl").is_symlink() == links
    assert {path.name for path in tmp_path.iterdir()} == {"theirs.jsonl", "ours.jsonl", "latest.jsonl"}


def test_runs_that_begin_in_the_same_second_have_names_of_their_own(here):
    assert len({_free_name(Settings()) for _ in range(50)}) == 50


def test_a_record_among_the_paths_is_told_what_it_is(here, capsys):
    here.joinpath("r.jsonl").write_text("")
    assert cli.main(["run", "r.jsonl"]) == 2
    assert "r.jsonl is a record, not a catalogue: `aclnn-oracle report r.jsonl`" in capsys.readouterr().err


def test_a_run_of_no_case_says_so(tmp_path):
    done = processes.oracle(
        "run", "--op", "tanh_backward", "--tier", "smoke", "-k", "nothing_like_this", "-q", cwd=tmp_path
    )
    assert done.returncode == 5
    chosen = "--op tanh_backward and --tier smoke and -k nothing_like_this"
    assert f"aclnn-oracle: nothing was run: no case is left by {chosen}; each alone, with --collect-only" in done.stderr


@pytest.mark.slow
def test_a_record_that_is_itself_called_latest_is_resumed_and_kept(tmp_path):
    """If a file system has no links, latest.jsonl is a copy."""
    words = ("run", "--op", "tanh_backward", "--tier", "smoke", "-k", "first_look", "-q")
    assert processes.oracle(*words, cwd=tmp_path).returncode == 0
    record = tmp_path / "reports/latest.jsonl"
    kept = record.read_bytes()
    record.unlink()
    record.write_bytes(kept)
    assert processes.oracle(*words, "--resume", "reports/latest.jsonl", cwd=tmp_path).returncode == 0
    assert record.read_bytes().splitlines()[:-1] == kept.splitlines()[:-1]
    assert not record.is_symlink()


@pytest.mark.slow
def test_a_run_whose_cases_fail_says_so_in_sixty_lines_with_the_totals_and_paths_last(tmp_path):
    words = ["run", str(default_dir() / "log_sigmoid_backward.yaml"), "--tier", "smoke"]
    done = processes.oracle(*words, "--backend-option", "numerics=native", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert len(lines) <= 60
    totals = [k for k, line in enumerate(lines) if line.startswith("Total Task: ")]
    assert len(totals) == 1
    assert totals[0] >= len(lines) - 6
    assert [line.partition(":")[0] for line in lines[totals[0] + 1 :] if ": reports/" in line] == ["record", "report"]
    assert sum("Backward" in line for line in lines[: totals[0]]) <= 12  # the ten biggest kinds of failure


STOPS = """
from oracle.explain.further_calls import GroupExplorer

def stopped(self, record):
    raise KeyboardInterrupt

GroupExplorer.groups = stopped
"""


@pytest.mark.slow
def test_ctrl_c_among_the_further_calls_of_a_run_that_is_over_loses_nothing(tmp_path):
    (tmp_path / "stops.py").write_text(STOPS)
    words = ["run", str(default_dir() / "log_sigmoid_backward.yaml"), "--tier", "smoke"]
    done = processes.oracle(*words, "--backend-option", "numerics=native", "-p", "stops", "-q", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "\nrecord: reports/" in done.stdout
    assert "\nreport: reports/" in done.stdout
    assert (tmp_path / "reports/latest.html").exists()


def test_run_takes_files_and_pytest_options_and_fails_with_one(tmp_path):
    file = default_dir() / "log_sigmoid_backward.yaml"
    words = ["run", f"{file}::{CASE}", "--backend", "misbehaving:FlipsOneSign", "--report", "r.html", "-x", "-q"]
    done = processes.oracle(*words, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed" in done.stdout
    assert (tmp_path / "r.html").exists()


def test_a_group_whose_smallest_case_passes_alone_says_so_first(tmp_path):
    """A dim kept from another call explains every wrong value, and no case fails in a replay."""
    words = ["run", "--op", "softmax_backward", "--where", "family:pairs dtype=float32 elements<300"]
    done = processes.oracle(*words, "--backend", "misbehaving:KeepsTheAxis", "-q", cwd=tmp_path)
    first = next(line for line in done.stdout.splitlines() if " fail " in line)
    assert "smallest case passes alone, in a process of its own: state across calls, or a race" in first, done.stdout


@pytest.mark.parametrize(
    "option", ["--durations 3", "--color no", "--deselect x", "--verbosity 1", "--junit-xml j.xml"]
)
def test_a_value_of_an_option_of_pytests_is_no_path(option, here):
    (here / "j.xml").touch()
    assert _without_ids(option.split(), {"oracle_operator": ()}) == option.split()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "nosuch.yaml"], "nosuch.yaml: no such file or folder, and no case id"),
        (
            ["run", "--tire", "smoke"],
            "smoke: no such file or folder, and no case id (an id is as `list --ids` prints it); "
            "--tire is no option that takes a value (did you mean '--tier'?)",
        ),
        (["run", "-o", "a.html"], "-o a.html: is pytest's option for NAME=VALUE of its configuration"),
        (["run", "-n", "-1"], "-n -1: give the number of workers, or auto"),
        (["run", "-nmany"], "-n many: give the number of workers, or auto"),
        (["run", "--op", "silu_backwrd"], "did you mean aclnnSiluBackward, or silu_backward?"),
        (["run", "--soc", "ascend42"], "unknown SoC 'ascend42'"),
        (["run", "--standard", "exactly"], "unknown standard 'exactly'"),
        (["replay", "softmax_backward/nothing[float16]"], "no case 'softmax_backward/nothing[float16]'"),
        (["replay", CASE, "--backend", "nothing"], "unknown backend 'nothing'"),
        (["replay", CASE, "--backend", "misbehaving:CannotBeMade"], "OSError: no device"),
        (["replay", CASE, "--catalogue", "gone"], "gone: no such folder"),
        (["coverage", "."], ".: no catalogue in this folder"),
        (["coverage", GELU, GELU], "is already used at"),
        (["power", GELU, GELU, "--tier", "smoke"], "is already used at"),
        (["coverage", "--require-threes", "90"], "--require-threes needs --interactions"),
        (["coverage", "--require-threes", "90", "--values"], "--require-threes needs --interactions"),
        (["coverage", "--require-threes", "101", "--interactions"], "--require-threes 101: must be 0 to 100"),
        (["coverage", "--require", "150"], "--require 150: must be 0 to 100"),
        (["coverage", "--require", "-1"], "--require -1: must be 0 to 100"),
        (["coverage", "--require", "nan"], "--require nan: must be 0 to 100"),
        (["coverage", "--information", "--values"], "give one of --information, --values"),
        (["coverage", "--interactions", "--values"], "give one of --interactions, --values"),
        (["coverage", "--information", "--require", "9"], "give one of --require, --information"),
        (["run", "--op", "relu", "--max-elements", "9"], "--max-elements is for ATK and TTK files; name a path"),
        (["coverage", "--max-elements", "9"], "--max-elements needs --information or --values"),
        (["coverage", "--max-elements", "0", "--values"], "--max-elements 0: must be at least 1"),
        (["coverage", "--tier", "full", "--volume", "L0"], "give one of --tier, --volume"),
        (["golden", "g", "--jobs", "0"], "--jobs 0: must be at least 1"),
        (["golden", "g", "--op", "tanh_backward", "--seed", "-1"], "--seed -1: must be at least 0"),
        (["golden", "g", "--op", "relu", "-k", "nothing_is_called_this"], "no case of the standard tier"),
        (["golden", "g", "--op", "gelu_backward", "-k", "no_such"], "tier of aclnnGeluBackward that -k 'no_such'"),
        (["golden", "g", "--soc", "ascend1"], "unknown SoC"),
        (["golden", "g", "--catalogue", "missing.yaml"], "missing.yaml: no such file or folder"),
        (["golden", "g", "--verify"], "cannot be read"),
        (["golden", "g", "--op", "gellu"], "gellu"),
        (["export-golden", "g", "--op", "aclnnNothing"], "aclnnNothing"),
        (["search", "--backend", "cpu", "--minutes=0"], "--minutes"),
        (["search", "--backend", "cpu", "--minutes=-1"], "--minutes"),
        (["search", "--backend", "cpu", "--minutes=nan"], "--minutes"),
        (["sweep", "aclnnSiluBackward", "--dtype", "float16", "--jobs", "-3"], "--jobs -3: must be at least 1"),
        (["sweep", "aclnnSiluBackward", "--dtype", "bfloat16", "--soc", "ascend910"], "ascend910 has no bfloat16; of"),
        (["history", ".", "-o", "h.pdf"], "h.pdf: no report format has the suffix '.pdf'; known: .html (HTML)"),
        (["history", ".", "-o", "h.md"], "h.md: no report format has the suffix '.md'; known: .html (HTML)"),
        (["new-operator", "aclnnSiluBackward"], "aclnn-oracle has aclnnSiluBackward (silu_backward); choose another"),
        (
            ["new-operator", "aclnnOracle"],
            "oracle.py would stand in for the installed module oracle; choose another name",
        ),
        (["new-operator", "aclnnSILUBackward"], "aclnn-oracle has aclnnSiluBackward (silu_backward); choose another"),
        (["convert", ".", "--to", "ttk", "-o", "conv"], ".: no catalogue in this folder"),
        (["convert", "no.yaml", "--to", "atk", "-o", "conv"], "no such file"),
        (["convert", ".", "--to", "atk", "-o", "cases.json"], "name a folder"),
        (["convert", ".", "--to", "ttk", "-o", "conv", "--limit", "-5"], "--limit -5: must be at least 1"),
        (["run", "--op", "relu", "--expectations", "."], "--expectations .: is a folder; name a file of it"),
        *(
            (
                ["power", "--op", "tanh_backward", *words.split(), "/dev/null/s.json"],
                f"{words.split()[-1]} /dev/null/s.json: cannot be written: Not a directory",
            )
            for words in ("-o", "--diagnosis --json", "--tier huge --json")  # refused before the work
        ),
        *(
            ([LONG if word == "X" else word for word in words.split()], LONG)
            for words in (
                "run X",
                "run --op relu --expectations X",
                "replay relu/a --catalogue X",
                "list X",
                "coverage X",
                "convert X --to atk -o conv",
                "golden X --op relu",
                "history X -o h.html",
                "judge X X",
                "export-golden X",
                "new-operator aclnnMyThing --dir X",
            )
        ),
    ],
)
def test_bad_input_is_one_message_and_status_2(here, capsys, words, message):
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("aclnn-oracle: ")
    assert message in err
    assert "Traceback" not in err
    assert not list(here.iterdir())


def test_a_new_operator_that_a_full_disk_cuts_short_leaves_no_file(here, capsys, monkeypatch):
    def full(path: Path, text: str, encoding: str) -> None:
        path.write_bytes(b"")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert cli.main(["new-operator", "aclnnMyThing"]) == 2
    assert "cannot be written: No space left on device" in capsys.readouterr().err
    assert not list(here.iterdir())


@pytest.mark.parametrize("words", [[], ["walk"], ["replay"], ["replay", CASE, "--frobnicate"]])
def test_a_wrong_command_line_shows_its_usage(words, capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(words)
    assert exit_.value.code == 2
    assert "usage: aclnn-oracle" in capsys.readouterr().err


def test_help_teaches(capsys):
    taught = {"--help": "aclnn-oracle run", "run --help": "--timeout-per-case", "replay --help": "--catalogue PATH"}
    for words, text in taught.items():
        with pytest.raises(SystemExit) as exit_:
            cli.main(words.split())
        assert exit_.value.code == 0
        assert text in capsys.readouterr().out


def test_a_command_that_is_started_with_closed_streams_has_some(monkeypatch):
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert cli.main(["report", "no_such_record.jsonl", "--format", "md"]) == 2
    for name in ("stdin", "stdout", "stderr"):
        getattr(sys, name).close()


def test_a_character_that_the_output_s_encoding_lacks_is_an_escape(tmp_path):
    write(tmp_path / "r.jsonl", [case("softmax_backward/a[float32]")])
    words = [sys.executable, "-m", "oracle.cli", "report", str(tmp_path / "r.jsonl"), "--format", "md", "--lang", "zh"]
    said = subprocess.run(words, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "gbk"}, check=True).stdout
    assert "\\u2705" in said.decode("gbk")
    assert "用例" in said.decode("gbk")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux's")
def test_a_full_disk_under_standard_output_is_one_line(tmp_path):
    write(tmp_path / "r.jsonl", [case("softmax_backward/a[float32]")])
    words = [sys.executable, "-m", "oracle.cli", "report", str(tmp_path / "r.jsonl"), "--format", "json"]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "aclnn-oracle: standard output: No space left on device; the command has not said all\n"


@pytest.mark.parametrize("of", ["ids.txt", "-"])
def test_a_list_of_ids_is_utf_8(here, monkeypatch, of):
    for begin in (b"", b"\xef\xbb\xbf", b"\xff\xfe"):
        content = begin + f"{CASE}\r\n".encode()
        here.joinpath("ids.txt").write_bytes(content)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        values = dict.fromkeys(("oracle_operator", "oracle_op", "oracle_case"))
        if begin == b"\xff\xfe":
            with pytest.raises(OracleError, match="not UTF-8: byte 0 is 0xff"):
                _without_ids([of], values)
        else:
            assert _without_ids([of], values) == []
            assert values["oracle_case"] == [CASE]


def test_a_working_directory_that_is_gone_is_told(here, capsys):
    write(here / "r.jsonl", [case("softmax_backward/a[float32]")])
    here.joinpath("gone").mkdir()
    os.chdir("gone")
    here.joinpath("gone").rmdir()
    assert cli.main(["report", str(here / "r.jsonl"), "-o", "r.html"]) == 2
    assert "aclnn-oracle: the working directory: No such file or directory; change" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_told_before_the_run(here, monkeypatch, capsys):
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere
    here.joinpath("outputs").mkdir()
    assert cli.main(["run", "--op", "relu", "--record-outputs", "outputs"]) == 2
    assert capsys.readouterr().err.endswith(
        "--record-outputs outputs: nothing can be written there; name another folder\n"
    )


def test_a_catalogue_that_cannot_be_read_is_bad_input_in_one_line(here, capsys):
    here.joinpath("log_sigmoid_backward.yaml").write_text("aclnn_oracle: 1\noperator: aclnnLogSigmoidBackward\n")
    assert cli.main(["run", "log_sigmoid_backward.yaml", "-q"]) == 2
    assert capsys.readouterr() == ("", "aclnn-oracle: log_sigmoid_backward.yaml:1: 'families' is missing\n")


@in_full_alone
def test_two_runs_leave_two_records(tmp_path):
    """Both demo commands of the README once wrote the same file."""
    words = ["run", "--op", "log_sigmoid_backward", "--tier", "smoke", "-k", "first_look", "-q"]
    for more in ([], ["--backend-option", "numerics=exact"], []):
        done = processes.oracle(*words, *more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    records = [p for p in (tmp_path / "reports").glob("*.jsonl") if not p.is_symlink()]
    assert len(records) == 3
    assert sum("exact" in p.name for p in records) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--backend", "tropch"], "did you mean 'torch'?"),
        (["--backend", "no_such_module:Device"], "no module 'no_such_module'"),
        (["--report", "run.pdf"], "no report format has the suffix '.pdf'"),
        (["--report", "/dev/null/run.html"], "--report /dev/null/run.html: cannot be written: "),
        (["--lang", "xx"], "unknown language 'xx'"),
        (["--op", "tanh_backward", "--resume", "/"], "/: cannot read the run record: Is a directory"),
    ],
)
def test_a_wrong_option_is_told_before_anything_is_collected(tmp_path, words, says):
    done = processes.oracle("run", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert "collected" not in done.stdout
    assert not (tmp_path / "reports").exists()


def test_a_report_that_got_its_name_here_is_no_option_in_the_message(here, capsys):
    (here / "reports").touch()
    assert cli.main(["run", "--op", "relu"]) == 2
    says = r"aclnn-oracle: the report reports/\S+: cannot be written: .+; name a file elsewhere with --report\n"
    assert re.fullmatch(says, capsys.readouterr().err)


def test_a_run_of_tests_without_a_case_is_refused(tmp_path):
    """Such a run would be green, and have no record."""
    (tmp_path / "test_mine.py").write_text("def test_mine(): pass\n")
    done = processes.oracle("run", "test_mine.py", "--record", "r.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert "ERROR: the paths hold no case, only 1 test: `aclnn-oracle run` needs a case" in done.stderr
    assert not (tmp_path / "r.jsonl").exists()


@pytest.mark.parametrize("how", [["-x"], ["--maxfail", "1", "-n", "1"]], ids=" ".join)
def test_stopping_at_the_first_failure_says_what_was_not_run(tmp_path, how):
    few = ["--op", "log_sigmoid_backward", "--op", "tanh_backward"]
    words = ["run", *few, "--tier", "smoke", "-m", "log_sigmoid_backward and float16", *how, "-q"]
    done = processes.oracle(*words, "--backend-option", "numerics=native", "--lang", "zh", cwd=tmp_path)
    assert done.returncode == 1
    assert "success 0, failed 1 (fail 1, notrun " in done.stdout
    assert "1 个失败后停止" in done.stdout
    assert "最小用例" in done.stdout
    assert "继续运行：在同一命令后加上 --resume " in done.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the device looks for the run in /proc")
@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
def test_ctrl_c_answers_130(tmp_path, sent):
    """This is the same for every command, as the parser's epilogue says. A device's KeyboardInterrupt is no Ctrl-C.
    Schedulers send SIGTERM."""
    (tmp_path / "interrupting.py").write_text(
        "import os, signal, time\n"
        "class Device:\n"
        "    name = 'interrupting'\n"
        "    def run(self, call):\n"
        "        run = open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1]\n"
        f"        os.kill(int(run), signal.{sent})\n"
        "        time.sleep(5)\n"
    )
    words = ["--op", "tanh_backward", "--tier", "smoke", "-k", "first_look", "--backend", "interrupting:Device"]
    done = processes.oracle("run", *words, cwd=tmp_path)
    assert done.returncode == 130, done.stdout + done.stderr
    assert "not run" in done.stdout
    assert "to go on: the same command with --resume " in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM for other processes")
def test_no_worker_outlives_a_command_that_a_scheduler_ends(tmp_path):
    """A worker that lives holds standard output: whoever reads the pipe waits for it."""
    words = [sys.executable, "-m", "oracle.cli", "golden", "fixtures", "--op", "softmax_backward", "--jobs", "2"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        while not list(tmp_path.glob("fixtures/*")) and run.poll() is None:  # the workers write
            time.sleep(0.05)
        run.send_signal(signal.SIGTERM)
        text, _ = run.communicate(timeout=60)
    left = "aclnn-oracle: fixtures holds some of the cases and no manifest; delete its files, then run this again"
    assert (run.returncode, text.splitlines()[-2:]) == (130, [left, "aclnn-oracle: interrupted"])
