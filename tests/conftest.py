"""Settings of the tests, and the emulated CANN's toolkit tree, built once (and kept in the user's cache)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from oracle.emulator import build
from oracle.errors import OracleError

# A test's time says nothing on a shared machine.
settings.register_profile("checkout", deadline=None)
settings.load_profile("checkout")


@pytest.fixture(scope="session")
def tree() -> Path:
    try:
        return build()
    except OracleError as error:
        if "did not compile" in str(error):
            raise
        pytest.skip(f"no emulated CANN here: {error}")
