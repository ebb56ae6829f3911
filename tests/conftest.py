"""The emulated CANN's toolkit tree, built once (and kept in the user's cache)."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracle.emulator import build
from oracle.errors import OracleError


@pytest.fixture(scope="session")
def tree() -> Path:
    try:
        return build()
    except OracleError as error:
        if "did not compile" in str(error):
            raise
        pytest.skip(f"no emulated CANN here: {error}")
