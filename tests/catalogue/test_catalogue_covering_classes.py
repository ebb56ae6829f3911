"""Rows in which classes meet: counted one by one, nothing that can meet is left out, and nothing else is needed."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import pytest
from small_catalogues import cases, family

from oracle import OracleError
from oracle.catalogue.covering_classes import covering_classes
from oracle.model.shape_classes import classes


@pytest.mark.parametrize("strength", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_classes_and_values_can_meet_meets_in_some_row(seed, strength):
    rng = Random(seed)
    labels = list(dict.fromkeys((rng.choice("abcd"), rng.choice("uvw"), rng.choice("xy")) for _ in range(9)))
    place, others = rng.randrange(4), [rng.randint(1, 4) for _ in range(3)]
    sizes = [*others[:place], len(labels), *others[place:]]
    rows = covering_classes(labels, sizes, place, strength)

    def told(row):
        return [*enumerate(labels[row[place]]), *((f"axis {k}", v) for k, v in enumerate(row) if k != place)]

    met = {each for row in rows for each in combinations(told(row), strength)}
    possible = {each for row in product(*map(range, sizes)) for each in combinations(told(row), strength)}
    assert met == possible
    assert len(rows) == len(set(rows)) <= len(list(product(*map(range, sizes))))
    assert rows == covering_classes(labels, sizes, place, strength)


def test_a_value_meets_what_it_fits_and_nothing_else():
    labels = [("a", "x"), ("a", "y"), ("b", "x")]

    def fits(label, axis, value):
        return axis == 1 or value == 0 or labels[label] != ("a", "x")

    rows = covering_classes(labels, [3, 2, 2], 0, 2, fits)
    assert all(fits(row[0], axis, row[axis]) for row in rows for axis in (1, 2))
    met = {two for row in rows for two in combinations((*labels[row[0]], *enumerate(row[1:])), 2)}
    assert {("a", (1, 1)), ("b", (1, 1)), ("x", (1, 1)), ("y", (1, 1)), ((0, 1), (1, 1))} <= met


def test_a_variant_that_changes_nothing_for_a_shape_stands_for_nothing(tmp_path):
    views = {"outer": 0, "second": 1, "inner": -1}
    variants = ", ".join(f'{k}: {{inputs: {{output: {{view: "expanded:{v}"}}}}}}' for k, v in views.items())
    written = family(shape="[{classes: [2, 4]}]", cover="triples_of_classes", variants=f"{{plain: {{}}, {variants}}}")
    found = cases(tmp_path, written)
    for case in found:
        shape, view = case.inputs["output"].shape, case.inputs["output"].view
        assert view == "contiguous" or shape[int(view.partition(":")[2])] > 1, case.id


def test_an_axis_without_values_leaves_no_rows():
    assert covering_classes([("a",)], [1, 0], 0, 2) == []


def test_a_family_meets_every_three_classes_dtypes_and_views(tmp_path):
    written = family(
        dtype="[float16, float32]",
        shape="[{classes: [2, 3]}]",
        cover="triples_of_classes",
        variants="{o: {}, o_strided: {output: {view: strided}}}",
    )
    found = cases(tmp_path, written)
    told = [(*classes(case.inputs["output"].shape), case.dtype, case.output.view) for case in found]
    met = {three for each in told for three in combinations(enumerate(each), 3)}
    for two in {two for each in told for two in combinations(enumerate(each[:5]), 2)}:
        for other in [(5, "float16"), (5, "float32"), (6, "contiguous"), (6, "strided")]:
            assert (*two, other) in met


def test_vectors_have_no_such_classes(tmp_path):
    with pytest.raises(OracleError, match="family f: triples_of_classes are of shapes of two or more axes"):
        cases(tmp_path, family(shape="[[7]]", cover="triples_of_classes"))
