"""Rows in which classes meet: every possible pair is covered, and every row is needed; counted one by one."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import pytest
from small_catalogues import cases, family

from oracle import OracleError
from oracle.catalogue.plan.covering import covering_classes
from oracle.model import classes as axis_classes
from oracle.model.classes import shape_classes


@pytest.mark.parametrize("strength", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_classes_and_values_can_meet_meets_in_some_row(seed, strength):
    rng = Random(seed)
    labels = list(dict.fromkeys((rng.choice("abcd"), rng.choice("uvw"), rng.choice("xy")) for _ in range(9)))
    sizes = [rng.randint(1, 4) for _ in range(3)]
    rows = covering_classes(labels, sizes, strength)

    def message(row):
        return [*enumerate(labels[row[0]]), *((f"axis {k}", v) for k, v in enumerate(row[1:]))]

    every = list(product(range(len(labels)), *map(range, sizes)))
    met = {each for row in rows for each in combinations(message(row), strength)}
    assert met == {each for row in every for each in combinations(message(row), strength)}
    assert len(rows) == len(set(rows)) <= len(every)
    assert rows == covering_classes(labels, sizes, strength)


def test_a_value_meets_what_it_fits_and_nothing_else():
    labels = [("a", "x"), ("a", "y"), ("b", "x")]

    def fits(label, axis, value):
        return axis == 0 or value == 0 or labels[label] != ("a", "x")

    rows = covering_classes(labels, [2, 2], 2, fits)
    assert all(fits(row[0], axis, row[1 + axis]) for row in rows for axis in (0, 1))
    met = {two for row in rows for two in combinations((*labels[row[0]], *enumerate(row[1:])), 2)}
    assert {("a", (1, 1)), ("b", (1, 1)), ("x", (1, 1)), ("y", (1, 1)), ((0, 1), (1, 1))} <= met


def test_a_variant_that_changes_nothing_for_a_shape_stands_for_nothing(tmp_path):
    views = {"outer": 0, "second": 1, "inner": -1}
    variants = ", ".join(f'{k}: {{inputs: {{output: {{view: "expanded:{v}"}}}}}}' for k, v in views.items())
    written = family(shape="[{classes: [2, 4]}]", cover="triples_of_classes", variants=f"{{plain: {{}}, {variants}}}")
    result = cases(tmp_path, written)
    for case in result:
        shape, view = case.inputs["output"].shape, case.inputs["output"].view
        assert view == "contiguous" or shape[int(view.partition(":")[2])] > 1, case.id


def test_a_family_meets_every_three_classes_of_its_axis_and_views(tmp_path):
    written = family(
        shape="[{product: [2, [1, 12, 100]]}, {product: [2, [1, 12, 100], [1, 5]]}]",
        cover="triples_of_axis_classes",
        attrs="{dim: [-1, 1, -$rank+1]}",
        variants="[{g: {}, h: {inputs: {gradOutput: {view: strided}}}}, {o: {}, p: {output: {view: strided}}}]",
    )
    met = set()
    for case in cases(tmp_path, written):
        shape, dim = case.output.shape, case.attrs["dim"]
        place = "last" if dim % len(shape) == len(shape) - 1 else "middle"
        views = case.output.view, case.inputs["gradOutput"].view
        labels = (*axis_classes.axis_classes(shape, dim % len(shape)), place, dim < 0, *views)
        met |= set(combinations(enumerate(labels), 3))
    lengths, views = ("of one element", "up to 16", "65 to 128"), ("contiguous", "strided")
    for length, (behind, place), sign in product(lengths, (("nothing", "last"), ("below 16", "middle")), (True, False)):
        for view in views:
            whole = {0: length, 1: behind, 2: place, 3: sign, 4: view}
            assert set(combinations(whole.items(), 3)) <= met


def test_an_axis_without_values_leaves_no_rows():
    assert covering_classes([("a",)], [0], 2) == ()


def test_a_family_meets_every_three_classes_dtypes_and_views(tmp_path):
    written = family(
        dtype="[float16, float32]",
        shape="[{classes: [2, 3]}]",
        cover="triples_of_classes",
        variants="{o: {}, o_strided: {output: {view: strided}}}",
    )
    result = cases(tmp_path, written)
    labels = [(*shape_classes(case.inputs["output"].shape), case.dtype, case.output.view) for case in result]
    met = {three for each in labels for three in combinations(enumerate(each), 3)}
    for two in {two for each in labels for two in combinations(enumerate(each[:5]), 2)}:
        for other in [(5, "float16"), (5, "float32"), (6, "contiguous"), (6, "strided")]:
            assert (*two, other) in met


def test_attributes_by_which_tensors_are_written_count_with_the_shape(tmp_path):
    head = """\
aclnn_oracle: 1
operator: aclnnNLLLossBackward
defaults:
  inputs:
    gradOutput: {gen: nonzero, shape: {when: {reduction: 0}, then: leading, else: []}}
    self: normal
    target: {gen: classes, count: $-1, low: 1, ignore: 0, pattern: alternate, shape: leading, dtype: uint8}
    weight: {gen: uniform, shape: last}
    totalWeight: {gen: uniform, shape: [1]}
families:
"""
    ignored = "{inside: {}, beyond: {inputs: {target: {ignore: $ignoreIndex}}}}"
    views = (f"{{{n}: {{}}, {n}_strided: {{inputs: {{{n}: {{view: strided}}}}}}}}" for n in ("gradOutput", "target"))
    written = family(
        shape="[{classes: [2, 2]}]",
        cover="triples_of_classes",
        attrs="{reduction: [0, 1], ignoreIndex: [$-1, 0]}",
        variants=f"[{', '.join((ignored, *views))}]",
    )
    met = set()
    for case in cases(tmp_path, written, head):
        (samples, classes_), ignored = case.inputs["self"].shape, case.attrs["ignoreIndex"]
        strided = {name for name, plan in case.inputs.items() if plan.view == "strided"}
        beyond = case.inputs["target"].data["ignore"] == classes_ > 0
        assert ignored > 0 or min(samples, classes_) > 1, case.id
        assert not beyond or (ignored == classes_ < 256 and samples > 1), case.id
        assert not strided or samples > 1, case.id
        assert "gradOutput" not in strided or case.attrs["reduction"] == 0, case.id
        met |= {(ignored > 0, beyond, name) for name in strided}
    kinds = ((False, False), (True, False), (True, True))
    assert met == {(*kind, name) for kind in kinds for name in ("gradOutput", "target")}


def test_pairs_of_classes_meet_with_more_elements_and_a_few_rows_hold_every_dtype(tmp_path):
    written = family(
        dtype="[float16, float32]", shape="[{classes: [2, 4], count: above 65536}]", cover="pairs_of_classes",
        tier="full", each_dtype="standard", attrs="{dim: [-1, 1, -$rank+1]}",
        variants="{o: {}, o_strided: {output: {view: strided}}}",
    )  # fmt: skip

    def message(case):
        axis = case.attrs["dim"] % len(case.output.shape)
        place = axis_classes.place(case.output.shape, axis), case.attrs["dim"] < 0
        return [*enumerate((*shape_classes(case.output.shape), place, case.output.view)), case.dtype]

    result = cases(tmp_path, written)
    few = [case for case in result if case.tier == "standard"]
    twos = {two for case in result for two in combinations(message(case), 2)}
    places = [(5, place) for place in (("last", True), ("middle", False), ("middle", True))]
    assert {one for two in twos for one in two if one[:1] == (3,)} == {(3, "above 65536")}
    for one in {one for two in twos for one in two if isinstance(one, tuple)}:
        assert {(one, "float16"), (one, "float32")} <= {two for case in few for two in combinations(message(case), 2)}
        if one[0] in (0, 1, 2, 4) and one != (0, "2"):
            assert {(one, place) for place in places} <= twos
            assert (one, (6, "strided")) in twos
    assert 0 < len(few) < len(result)
    assert len({case.id for case in result}) == len(result)
    rows = {(*shape_classes(case.output.shape), case.output.view) for case in result}
    assert any(row[1:3] == ("above 8192", "above 48") and row[-1] == "strided" for row in rows)


def test_a_family_like_another_takes_the_keys_that_it_has_not(tmp_path):
    one = "  one: {why: a reason to be, dtype: float32, shape: [[4, 6]], attrs: {dim: 0}, inputs: {output: normal}}\n"
    two = "  two: {why: another reason, like: one, shape: [[3, 5]], inputs: {gradOutput: uniform 1 2}}\n"
    first, second = cases(tmp_path, one + two)
    assert (second.attrs, second.dtype, second.output.shape) == (first.attrs, "float32", (3, 5))
    assert second.inputs["output"].data == first.inputs["output"].data
    assert second.inputs["gradOutput"].data["gen"] == "uniform" != first.inputs["gradOutput"].data["gen"]
    with pytest.raises(OracleError, match=r"c.yaml:10: unknown family 'three'.*one"):
        cases(tmp_path, one + two.replace("like: one", "like: three"))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"cover": "triples_of_axis_classes"}, "family f: triples_of_axis_classes needs dim in its attrs"),
        (
            {"cover": "triples_of_classes", "shape": "[[7]]"},
            "family f: triples_of_classes are of shapes of two or more ax",
        ),
        ({"shape": "[{count: above 65536}]"}, "'classes' is a dependency of 'count'"),
        ({"shape": "[{classes: [2, 3], count: above 7}]"}, "unknown value 'above 7'; known: above 65536, above 2\\^20"),
        ({"shape": "[{classes: [2, 3], sizes: ranks}]"}, "one of them alone"),
    ],
)
def test_classes_are_of_what_has_them_and_a_set_of_shapes_is_written_in_one_way(tmp_path, keys, message):
    with pytest.raises(OracleError, match=message):
        cases(tmp_path, family(**keys))
