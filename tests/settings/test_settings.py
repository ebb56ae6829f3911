"""Options: one table, wrong values reported in one sentence, and settings written back as options."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

import pytest

from oracle.catalogue.expand.ecosystem import Volume
from oracle.model.errors import OracleError
from oracle.operators import OPERATORS
from oracle.settings.options import OPTIONS, Project, add_options, soc_of, spell
from oracle.settings.settings import Settings, settings_of


def parsed(*words):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_options(parser)
    return vars(parser.parse_args(words))


def test_nothing_given_is_the_default():
    assert settings_of({}) == settings_of(parsed()) == Settings()


OUTSIDE = "outside_backward_page:OPERATOR"


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """An operator of another package."""
    text = (Path(__file__).parents[2] / "oracle/operators/log_sigmoid_backward.py").read_text("utf-8")
    text = text.replace("aclnnLogSigmoidBackward", "aclnnOutsideBackward").replace("from ..", "from oracle.")
    text = text.replace("from .", "from oracle.operators.")
    (tmp_path / "outside_backward_page.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    OPERATORS.remove("aclnnOutsideBackward")


@pytest.mark.usefixtures("outside")
def test_every_option_reaches_the_settings():
    words = shlex.split(
        "--backend my:Device --backend-option path=D --soc ascend910_95 --standard dual-L1 --third-party torch "
        "--tier full --seed 7 --layers strict,structure "
        "--cann master --gate structure --shard 1/2 --authority document --overflow saturate --determinism 2 "
        "--invariance --isolate --subnormals keep "
        "--timeout-per-case 301 --max-memory 1.5G --record-outputs O --devices 2,0 --emulate "
        "--max-elements 9 --golden-cache G --shuffle 3 "
        f"--expectations {Path(__file__)} --where 'rank>2' --no-explain --case a/b[c] "
        f"--op softmax_backward --operator {OUTSIDE}"
    )
    got = settings_of(parsed(*words))
    default = Settings()
    others = {"cluster", "pairs", "volume"}  # not allowed with --isolate, --op or --tier
    set_by = set(vars(got)) - {"worker", "device", "place", "replay_arguments", "standard_options", "steps"} - others
    assert {name for name in set_by if getattr(got, name) == getattr(default, name)} == set()
    assert got.soc == "ascend950"
    assert got.layers == ("structure", "strict")
    assert settings_of(parsed("--gate", "standard")).gate == ("structure", "standard")
    assert settings_of(parsed("--emulate", "--backend", "aclnn")).cann == "8.5"  # the emulated CANN's own version
    assert settings_of(parsed("--volume", "L0")).volume == Volume("l0", 5000)
    options = parsed("--standard", "single-bm", "--standard-option", "type=high_performance")
    assert dict(settings_of(options).standard_options) == {"type": "high_performance"}


@pytest.mark.parametrize("prefixed", [False, True])
def test_spelling_is_the_inverse_of_parsing(prefixed):
    words = ["--backend", "torch", "--backend-option", "device=cuda", "--seed", "3", "--invariance", "--tier", "full"]
    again = spell(parsed(*words), prefixed=prefixed)
    assert (parsed(*again) == parsed(*words)) if not prefixed else all(w.startswith("--oracle-") for w in again)


def test_a_replay_repeats_what_decides_the_verdict_only():
    words = ["--backend", "torch", "--tier", "full", "--report", "x.html", "--seed", "3", "--isolate"]
    assert settings_of(parsed(*words)).replay_arguments == ("--backend", "torch", "--seed", "3")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--soc ascend42", "unknown SoC 'ascend42'; known: ascend910, "),
        ("--standard exactly", "unknown standard 'exactly'; known: mixed"),
        ("--tier all", "unknown tier 'all'"),
        ("--layers strict,loose", "unknown layer 'loose'"),
        ("--layers=,", "unknown layer ''"),
        ("--layers strict --gate standard", "--gate standard: layer standard is not judged; --layers says strict"),
        ("--cann 7", "unknown CANN version '7'; known: 8.5, 9.0, 9.1, 9.2, master"),
        ("--overflow wrap", "unknown overflow mode 'wrap'"),
        ("--seed one", "--seed 'one': must be an integer"),
        ("--seed -1", "--seed -1: must be at least 0"),
        ("--determinism 0", "must be at least 1"),
        ("--timeout-per-case 0", "must be a positive number of seconds"),
        ("--timeout-per-case nan", "must be a positive number of seconds"),
        ("--timeout-per-case soon", "must be a number of seconds"),
        ("--timeout-per-case 1e300", "must be a positive number of seconds, at most 1e+09, or none"),
        ("--standard single-bm --standard-option type={[]:1}", "--standard-option type={[]:1}: must be "),
        (f"--standard single-bm --standard-option type={'-' * 9999}1", "--standard-option type=---"),
        ("--max-memory 8X", "must be a number of bytes, also with K, M, G or T"),
        ("--max-memory 0", "must be a positive number of bytes"),
        ("--max-memory 63M", "must be at least 64M, for the device's process itself"),
        ("--devices 0,0", "named twice"),
        ("--devices a", "must be an integer"),
        ("--backend-option numerics", "must be KEY=VALUE"),
        ("--backend-option a=1 --backend-option a=2", "'a' is given twice"),
        ("--standard-option tpye=x", "unknown option of standard 'mixed'"),
        ("--third-party torch", "has no third party"),
        ("--standard dual-L1", "needs --third-party"),
    ],
)
def test_a_wrong_value_is_named(words, message):
    with pytest.raises(OracleError) as error:
        settings_of(parsed(*words.split()))
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("option", [option for option in OPTIONS if option.kind != "flag"], ids=lambda o: o.name)
def test_an_empty_value_of_any_option_is_refused(option):
    with pytest.raises(OracleError, match=f"{option.flag} '': is empty; give"):
        settings_of(parsed(option.flag, ""))


def test_the_emulated_cann_is_for_what_runs_on_cann():
    for backend in ("cpu", "torch", "replay"):
        with pytest.raises(OracleError, match=f"--emulate: --backend {backend} does not run on CANN; give"):
            settings_of(parsed("--emulate", "--backend", backend))
    for backend in ("aclnn", "torch_npu", "my_device:Device"):
        assert settings_of(parsed("--emulate", "--backend", backend)).emulate
    assert settings_of(parsed("--emulate", "--standard", "dual-L1", "--third-party", "aclnn")).emulate


def test_every_option_has_a_help_and_its_own_name():
    assert len({option.dest for option in OPTIONS}) == len(OPTIONS)
    assert all(len(option.help) > 15 for option in OPTIONS)


def test_a_call_in_a_process_of_its_own_has_two_minutes_unless_told_otherwise():
    def limits(*words):
        settings = settings_of(parsed(*words))
        return settings.apart, settings.case_limit

    assert limits("--isolate") == (True, 120.0)
    assert limits("--isolate", "--timeout-per-case", "none") == (True, float("inf"))
    assert limits("--timeout-per-case", "none")[0] is False
    assert limits("--max-memory", "2G") == (True, 120.0)
    assert settings_of(parsed("--max-memory", "98304k")).max_memory == 96 << 20


def test_every_device_but_our_own_code_has_a_process_of_its_own():
    for backend in ("torch", "aclnn", "torch_npu", "my:Device"):
        assert settings_of(parsed("--backend", backend)).apart
        assert not settings_of(parsed("--backend", backend, "--no-isolate")).apart
    for words in ([], ["--backend", "replay"]):
        assert not settings_of(parsed(*words)).apart
        assert settings_of(parsed(*words, "--isolate")).apart
    for words in (["--isolate"], ["--max-memory", "1G"], ["--timeout-per-case", "5"]):
        with pytest.raises(OracleError, match="give one of them"):
            settings_of(parsed("--no-isolate", *words))


# a project's own usual options ----------------------------------------------------------------------------------------

OF_A_PROJECT = '[tool.aclnn_oracle]\nbackend = "torch"\nbackend-option = ["device=cpu"]\nsoc = "ascend910"\n'


@pytest.mark.parametrize(
    ("given", "backend", "options"),
    [({}, "torch", ["device=cpu"]), ({"oracle_backend": "torch"}, "torch", ["device=cpu"]),
     ({"oracle_backend": "cpu"}, "cpu", None)],
)  # fmt: skip
def test_a_project_s_options_of_a_backend_are_of_no_other(tmp_path, given, backend, options):
    (tmp_path / "pyproject.toml").write_text(OF_A_PROJECT)
    values = {"oracle_backend": None, "oracle_backend_option": None, **given}
    Project.near(tmp_path).fill(values)
    assert (values["oracle_backend"], values["oracle_backend_option"]) == (backend, options)
    assert values["oracle_soc"] == "ascend910"


def test_a_command_takes_the_soc_that_it_names_else_its_project_s(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert soc_of(None) == "ascend910b"
    (tmp_path / "pyproject.toml").write_text(OF_A_PROJECT)
    assert (soc_of(None), soc_of("ascend950")) == ("ascend910", "ascend950")


def test_an_unknown_soc_of_a_project_is_told_with_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(OF_A_PROJECT.replace("ascend910", "ascend95"))
    with pytest.raises(OracleError, match=r"pyproject\.toml: \[tool\.aclnn_oracle\] soc: unknown SoC 'ascend95'"):
        soc_of(None)
