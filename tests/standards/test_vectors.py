"""The published vectors of the accuracy standards, where a checkout has them beside it."""

import json
from pathlib import Path

import pytest
from vectors import apply, mismatches

FILE = Path(__file__).resolve().parents[3] / "shared/data/vectors/standards.json"
VECTORS = json.loads(FILE.read_text())["vectors"] if FILE.exists() else []


@pytest.mark.skipif(not VECTORS, reason="the vectors are not beside this checkout")
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_vector_and_its_other_readings(vector):
    result = mismatches(vector["expect"], apply(vector))
    for reading, expect in vector.get("alt", {}).items():
        result += [f"{reading}: {line}" for line in mismatches(expect, apply(vector, reading))]
    assert not result, vector["note"]
