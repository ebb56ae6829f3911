"""The stated inputs as cases, and everything made of them once."""

from __future__ import annotations

from functools import cache

import pytest
import stated

from oracle.catalogue import load
from oracle.catalogue.case import Case
from oracle.runner.run import Prepared
from oracle.runner.settings import Settings


@pytest.fixture(scope="session")
def stated_files(tmp_path_factory):
    return stated.write(tmp_path_factory.mktemp("stated"))


@pytest.fixture(scope="session")
def stated_cases(stated_files) -> tuple[Case, ...]:
    return tuple(case for path in stated_files for case in load(path))


@pytest.fixture(scope="session")
def prepared(stated_cases):
    """Return ``prepared(op, soc, seed)``: the operator's stated cases with data and reference."""

    @cache
    def make(op: str, soc: str = "ascend910b", seed: int = 0) -> tuple[Prepared, ...]:
        settings = Settings(soc=soc, seed=seed)
        planned = [c for c in stated_cases if c.op == op and (not c.soc or soc in c.soc)]
        return tuple(Prepared.make(case, settings) for case in planned)

    return make
