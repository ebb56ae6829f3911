"""Find a backend by name, make it with options, and report errors in one sentence."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import oracle.backends
from oracle.backends import load
from oracle.case.one_case import run_case
from oracle.catalogue import select
from oracle.catalogue.loader import load_default
from oracle.model.errors import OracleError
from oracle.settings.settings import Settings

MODULE = """
class Device:
    name = "mine"
    def __init__(self, *, level="low", **_):
        self.level = level
    def run(self, call): pass

class Strict:
    name = "strict"
    def __init__(self, path): self.path = path
    def run(self, call): pass

class Nested:
    inner = Device

def make(level="low"):
    return Device(level=level)

instance = Device()
class Nameless:
    def run(self, call): pass
class Lazy:
    name = "lazy"
class Fails:
    def __init__(self): raise OSError("no device")
number = 5
def nothing(): return None
"""


@pytest.fixture(autouse=True)
def _module(tmp_path, monkeypatch):
    """my_device.py lies in the current directory, which is not on sys.path."""
    tmp_path.joinpath("my_device.py").write_text(MODULE)
    tmp_path.joinpath("broken_device.py").write_text("1 / 0")
    tmp_path.joinpath("needy_device.py").write_text("import no_such_package")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    yield
    for name in ("my_device", "broken_device", "needy_device"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("attribute", ["Device", "make", "instance", "Nested.inner"])
def test_a_class_a_factory_and_an_instance_are_backends(attribute):
    assert load(f"my_device:{attribute}").name == "mine"


def test_options_are_keyword_strings():
    assert load("my_device:Device", {"level": "high"}).level == "high"
    assert load("my_device:make", {"level": "high"}).level == "high"
    assert load("my_device:Strict", {"path": "x"}).path == "x"


def test_an_installed_entry_point_is_found_by_its_name(monkeypatch):
    point = EntryPoint("lab", "my_device:Device", oracle.backends.GROUP)
    monkeypatch.setattr(oracle.backends, "installed", lambda: {"lab": point})
    assert load("lab").name == "mine"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cqu", {}, "unknown backend 'cqu' (did you mean 'cpu'?); known: cpu, "),
        ("gone:Device", {}, "no module 'gone' on sys.path"),
        ("my_device", {}, "write module:attribute; which attribute of my_device?"),
        ("my_device:Devise", {}, "has no attribute 'Devise' (did you mean 'Device'?)"),
        ("broken_device:Device", {}, "importing broken_device failed at "),
        ("needy_device:Device", {}, "needs the module 'no_such_package', which is not installed"),
        ("my_device:Nameless", {}, "has no name"),
        ("my_device:Lazy", {}, "has no run"),
        ("my_device:nothing", {}, "NoneType has no name and no run"),
        ("my_device:number", {}, "is int; it must be a class, a factory or an instance"),
        ("my_device:Fails", {}, "could not be made: OSError: no device"),
        ("my_device:make", {"depth": "1"}, "has no option 'depth'; it has: level"),
        ("my_device:Strict", {}, "needs --backend-option path=..."),
        ("my_device:instance", {"level": "x"}, "takes no options: level"),
        ("cpu", {"numerics": "double"}, "unknown numerics 'double'; known: exact, kernel, native"),
        ("replay", {"path": "nowhere"}, "nowhere: no recording here"),
    ],
)
def test_what_is_wrong_is_said(name, options, message):
    with pytest.raises(OracleError) as error:
        load(name, options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_documented_example_runs(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "adding-a-backend.md").read_text()
    tmp_path.joinpath("my_device.py").write_text(text.partition("```python\n")[2].partition("```")[0])
    device = load("my_device:Device", {"threads": "2"})
    cases = select(load_default(("aclnnLogSigmoidBackward",), None, "smoke"), tier="smoke", soc="ascend910b")
    statuses = {case.id: run_case(case, device, Settings()).status for case in cases}
    assert statuses == {case.id: "pass" if case.computes("ascend910b") else "skip" for case in cases}
    other = load_default(("aclnnTanh",), None, "smoke")[0]
    assert "not written yet" in run_case(other, device, Settings()).reason
