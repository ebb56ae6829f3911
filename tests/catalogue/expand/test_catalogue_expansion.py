"""Laws of the expansion: products of axes, ids from names and parameters, overrides, references, and every error."""

from __future__ import annotations

import random
from itertools import combinations, product
from pathlib import Path

import pytest
from ordinary import some
from small_catalogues import HEAD, cases, catalogue, family

from oracle import OracleError
from oracle.catalogue import default_dir, load, load_all, make_inputs, select
from oracle.model.aclnn import PLATFORMS

NLL = """\
aclnn_oracle: 1
operator: aclnnNLLLossBackward
defaults:
  main: self
  attrs: {reduction: 0, ignoreIndex: -100}
  inputs: {gradOutput: {gen: normal, shape: {when: {reduction: 0}, then: leading, else: []}}, self: normal, target: {gen: classes, count: $-1, shape: leading, dtype: int64}, weight: {gen: uniform, shape: last}, totalWeight: {gen: constant, value: 2.5, shape: [1]}}
  output: {}
families:
"""  # noqa: E501

# keys of family f -> ids
PRODUCTS = [
    ({}, ["f[float32-4x6]"]),
    ({"shape": "[[]]"}, ["f[float32-scalar]"]),
    ({"shape": "[[0, 3]]"}, ["f[float32-0x3]"]),
    ({"dtype": "floats"}, ["f[float16-4x6]", "f[bfloat16-4x6]", "f[float32-4x6]"]),
    ({"attrs": "{dim: 1}"}, ["f[float32-4x6-dim=1]"]),
    ({"attrs": "{dim: every}"}, [f"f[float32-4x6-dim={d}]" for d in (-2, -1, 0, 1)]),
    ({"attrs": "{dim: every}", "shape": "[[]]"}, ["f[float32-scalar-dim=-1]", "f[float32-scalar-dim=0]"]),
    ({"attrs": "{dim: $1}", "expect": "validate"}, ["f[float32-4x6-dim=6]"]),
    ({"attrs": "{dim: $0-4}"}, ["f[float32-4x6-dim=0]"]),
    ({"attrs": "{dim: [-$rank, $rank-1]}"}, ["f[float32-4x6-dim=-2]", "f[float32-4x6-dim=1]"]),
    ({"shape": "[{product: [2, [3, 4]]}, [7]]"}, ["f[float32-2x3]", "f[float32-2x4]", "f[float32-7]"]),
    ({"shape": "[{product: [{near_powers: [1, 2]}]}]"}, [f"f[float32-{n}]" for n in (1, 2, 3, 4, 5)]),
    ({"variants": "{a: {}, b: {output: {dtype: float16}}}"}, ["f[float32-4x6-a]", "f[float32-4x6-b]"]),
    ({"variants": "{a: {attrs: {dim: [0, 1]}}, b: {}}"},
     ["f[float32-4x6-dim=0-a]", "f[float32-4x6-dim=1-a]", "f[float32-4x6-b]"]),
    ({"variants": "{a: {dtype: float16, shape: [[3]]}}"}, ["f[float16-3-a]"]),
    ({"variants": "[{a: {}, b: {}}, {x: {}, y: {}}]"}, [f"f[float32-4x6-{v}]" for v in ("a-x", "a-y", "b-x", "b-y")]),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "ids"), PRODUCTS)
def test_axes_multiply_into_ids(tmp_path: Path, keys: dict[str, str], ids: list[str]) -> None:
    assert [case.id for case in cases(tmp_path, family(**keys))] == [f"softmax_backward/{i}" for i in ids]


def test_ids_and_data_do_not_depend_on_order(tmp_path: Path) -> None:
    families = [family(shape=f"[[{n}, 3], [{n}]]", attrs="{dim: [0, -1]}").replace(" f:", f" f{n}:") for n in (2, 5, 7)]
    first = {c.id: c for c in cases(tmp_path, "".join(families))}
    random.Random(1).shuffle(families)
    second = {c.id: c for c in cases(tmp_path, "".join(families))}
    assert first.keys() == second.keys()
    for case_id, case in first.items():
        a, b = (make_inputs(c, seed=3)[0] for c in (case, second[case_id]))
        assert all(a[name].tobytes() == b[name].tobytes() for name in a)


# variant -> its effect on (parameter, attribute of the plan, value)
OVERRIDES = [
    ("{inputs: {output: {view: transposed}}}", "output", "view", "transposed"),
    ("{inputs: {output: {view: transposed}}}", "output", "data", {"gen": "softmax", "dim": -1}),
    ("{inputs: {output: {std: 3.0}}}", "output", "data", {"gen": "softmax", "dim": -1, "std": 3.0}),
    ("{inputs: {output: uniform 0 1}}", "output", "data", {"gen": "uniform", "low": 0, "high": 1}),
    ("{inputs: {output: 2.5}}", "output", "data", {"gen": "constant", "value": 2.5}),
    ("{inputs: {output: .nan}}", "output", "dtype", "float32"),
    ("{inputs: {output: {shape: {one: [0]}}}}", "output", "shape", (1, 6)),
    ("{inputs: {output: {shape: {drop: 1}}}}", "output", "shape", (6,)),
    ("{inputs: {output: {shape: leading}}}", "output", "shape", (4,)),
    ("{inputs: {output: {shape: [2, $-1, $0+1]}}}", "output", "shape", (2, 6, 5)),
    ("{inputs: {gradOutput: {gen: uniform, scale: $size}}}", "gradOutput", "data", {"gen": "uniform", "scale": 24}),
    ("{inputs: {gradOutput: {format: NCHW}}}", "gradOutput", "format", "NCHW"),
    ("{inputs: {gradOutput: {storage_shape: [24]}}}", "gradOutput", "storage_shape", (24,)),
]


@pytest.mark.parametrize(("variant", "name", "attribute", "value"), OVERRIDES)
def test_overrides(tmp_path: Path, variant: str, name: str, attribute: str, value: object) -> None:
    (case,) = cases(tmp_path, family(expect="validate", variants=f"{{v: {variant}}}"))
    assert getattr(case.inputs[name], attribute) == value


def test_null_and_restored_inputs(tmp_path: Path) -> None:
    keys = {"inputs": "{output: null}", "variants": "{a: {}, b: {inputs: {output: 1.0}}}"}
    made = cases(tmp_path, family(**keys, expect="ACLNN_ERR_PARAM_NULLPTR"))
    assert [case.inputs["output"] is None for case in made] == [True, False]


def test_shapes_that_depend_on_attributes(tmp_path: Path) -> None:
    made = cases(tmp_path, family(attrs="{reduction: [0, 1]}", shape="[[5, 3], [7]]"), NLL)
    grads = [case.inputs["gradOutput"].shape for case in made]  # type: ignore[union-attr]
    assert grads == [(5,), (), (), ()]
    assert [case.inputs["target"].data["count"] for case in made] == [3, 3, 7, 7]  # type: ignore[union-attr,index]


def test_a_bfloat16_case_is_planned_where_bfloat16_exists(tmp_path: Path) -> None:
    able = tuple(name for name, p in PLATFORMS.items() if p.bfloat16)
    made = {c.id: c for c in cases(tmp_path, family(dtype="floats"))}
    assert made["softmax_backward/f[bfloat16-4x6]"].soc == able
    assert made["softmax_backward/f[float32-4x6]"].soc == ()
    (mixed,) = cases(tmp_path, family(output="{dtype: bfloat16}"))
    assert mixed.soc == able
    (stated,) = cases(tmp_path, family(dtype="bfloat16", expect="ACLNN_ERR_PARAM_INVALID"))
    assert stated.soc == ()


def test_only_cases_refused_everywhere_go_without_data(tmp_path: Path) -> None:
    for expect, spec_only in (
        ("ACLNN_ERR_PARAM_INVALID", True),
        ("{ascend950: ACLNN_ERR_PARAM_INVALID, default: ACLNN_SUCCESS}", False),
        ("ACLNN_SUCCESS", False),
    ):
        (case,) = cases(tmp_path, family(expect=expect))
        plans = [*case.inputs.values(), *case.outputs.values()]
        assert all(plan is not None and plan.spec_only is spec_only for plan in plans)


def test_tiers_contain_the_ones_before_them(tmp_path: Path) -> None:
    made = cases(tmp_path, family(variants="{a: {tier: smoke}, b: {}, c: {tier: full}}"))
    assert [len(select(made, tier=t)) for t in ("smoke", "standard", "full", None)] == [1, 2, 3, 3]
    made = cases(tmp_path, family(dtype="floats"))
    assert len(select(made, soc="ascend910")) == 2
    assert len(select(made, soc="ascend910_95")) == 3, "an alias of ascend950"


OPEN = "  f:\n    why: a reason to be\n    dtype: float32\n    shape: [[1]]\n    variants:\n"  # variants from line 14

# families (from line 9), line, words of the message
RULE = "{cases: 10, ranks: [1, 3], elements: 1000, draws: [gradOutput]}"
ERRORS = [
    (family(shpe="[[1]]"), 9, "unknown key 'shpe'"),
    (family(why=None), 9, "'why' is missing"),
    (family(dtype="float12"), 9, "unknown dtype 'float12'"),
    (family(dtype="1"), 9, "must be string or array"),
    (family(dtype=None), 9, "has no dtype"),
    (family(shape="[[1.0]]"), 9, "must be integer"),
    (family(shape="[[-1]]"), 9, "-1"),
    (family(shape="[4]"), 9, "must be array or object"),
    (family(shape="[]"), 9, "expands to nothing"),
    (family(dtype="[]"), 9, "families.f.dtype: [] should be non-empty"),
    (family(attrs="{dim: []}"), 9, "expands to nothing"),
    (family(variants="{}"), 9, "expands to nothing"),
    (family(variants="[]"), 9, "expands to nothing"),
    (family(shape="[{product: [[]]}]"), 9, "expands to nothing"),
    (family(cover="pairs", variants="[]"), 9, "expands to nothing"),
    (family(cover="fours"), 9, "unknown value 'fours'"),
    (family(cover="pairs", variants="{a: {attrs: {dim: 0}}}"), 9, "attrs stands in the family alone"),
    (family(each_dtype="smoke"), 9, "each_dtype goes with cover: pairs_of_classes"),
    (family(shape="[[4], [4]]"), 9, "already used at"),
    (family(attrs="{dims: 1}"), 9, "unknown attribute of aclnnSoftmaxBackward 'dims'"),
    (family(attrs="{dim: true}"), 9, "True"),
    (family(attrs="{dim: 9223372036854775808}"), 9, "int64"),
    (family(attrs="{dim: all}"), 9, "'all'"),
    (family(attrs="{dim: $5}"), 9, "no axis 5"),
    (family(inputs="{self: normal}"), 9, "unknown input of aclnnSoftmaxBackward 'self'"),
    (family(inputs="{output: gauss}"), 9, "unknown generator 'gauss'"),
    (family(inputs="{output: classes 3 0 0.5 odd}"), 9, "unknown pattern of generator classes 'odd'; known: random, "),
    (family(inputs="{output: {gen: constant, value: 0.5, dtype: int64}}"), 9, "output: 0.5 does not fit into int64"),
    (family(inputs="{output: softmax 2}"), 9, "output: softmax has no axis 2 in shape (4, 6)"),
    (family(inputs="{output: {gen: uniform, lo: 1}}"), 9, "unknown parameter of generator uniform 'lo'"),
    (family(inputs="{output: {gen: uniform, low: a}}"), 9, "low must be of kind float"),
    (family(inputs="{output: {gen: uniform, low: true}}"), 9, "low must be of kind float"),
    (family(inputs="{output: uniform 2 1}"), 9, "low is 2 and high is 1; the lower one comes first"),
    (family(inputs="{output: normal 0 -1}"), 9, "std is -1; it must be in [0, 1e+300]"),
    (family(inputs="{output: {gen: normal, scale: .nan}}"), 9, "scale is nan; it must be in"),
    (family(soc="[]"), 9, "families.f.soc: [] should be non-empty"),
    (family(inputs="{output: [0.5, x]}"), 9, "generator literal: values[1] is 'x'; it must be a number"),
    (family(inputs="{output: {gen: permutation, count: -1}}"), 9, "count is -1; it must be at least 0"),
    (family(inputs="{output: {gen: bernoulli, p: 3}}"), 9, "p is 3; it must be in [0, 1]"),
    (family(inputs="{output: {gen: large, binades: 0}}"), 9, "binades is 0; it must be in [1, 2048]"),
    (family(inputs="{output: {gen: magnitudes, low: 0, high: 5000}}"), 9, "high is 5000; it must be in [-2048, 2048]"),
    (family(inputs="{output: {gen: bit_patterns, start: 99999999999999999999}}"), 9, "start is 99999999999999999999;"),
    (family(inputs="{output: {gen: near, points: []}}"), 9, "points is empty; it must hold a number"),
    (family(inputs="{output: [1, 2, 3]}"), 9, "output: 3 numbers are written, and the tensor has 24 elements"),
    (family(inputs="{output: {gen: normal, spots: [[24, 1]]}}"), 9, "output: spot 24 lies outside of the tensor"),
    (family(inputs="{output: {gen: normal, stream: gradOutptu}}"), 9, "'gradOutptu' (did you mean 'gradOutput'?)"),
    (family(inputs="{output: {view: \"expanded:--1\"}}"), 9, "view 'expanded:--1': not an integer"),
    (family(draw="1"), 9, "family f: draw makes the rest of a call; remove dtype"),
    (family(generate=RULE, shape=None, draw="1"), 9, "family f: generate makes the calls; remove draw"),
    (family(generate=RULE.replace("}", ", longer: dimm}"), shape=None), 9, "'dimm' (did you mean 'dim'?)"),
    (family(like="f"), 9, "family f: f is like another family itself"),
    (family(shape="[{sizes: nosuch}]"), 9, "unknown set of sizes 'nosuch'"),
    (family(shape="[{classes: [8, 2]}]"), 9, "the lower rank comes first"),
    (family(inputs="{output: {gen: onehot}}"), 9, "the parameter dim is missing"),
    (family(inputs="{output: uniform 1 2 3}"), 9, "takes at most 2"),
    (family(inputs="{output: {gen: softmax, dim: $axis}}"), 9, "unknown reference '$axis'"),
    (family(inputs="{output: {view: diagonal}}"), 9, "unknown view 'diagonal'"),
    (family(inputs="{output: {view: transposed}}", shape="[[3]]"), 9, "needs rank 2"),
    (family(inputs="{output: {format: XYZ}}"), 9, "unknown format 'XYZ'"),
    (family(inputs="{output: {dtype: int3}}"), 9, "unknown dtype 'int3'"),
    (family(inputs="{output: {shape: rows}}"), 9, "unknown shape 'rows'"),
    (family(inputs="{output: {shape: {one: [5]}}}"), 9, "no axis 5"),
    (family(inputs="{output: {shape: {drop: 3}}}"), 9, "fewer axes"),
    (family(inputs="{output: {shape: {when: {dim: 0}, then: same}}}"), 9, "when with then and else"),
    (family(inputs="{output: {shape: {when: {dims: 0}, then: same, else: last}}}"), 9, "unknown attribute 'dims'"),
    (family(output="{view: expanded}"), 9, "cannot be expanded"),
    (family(output="uniform"), 9, "the output has no data"),
    (family(soc="ascend1000"), 9, "unknown SoC 'ascend1000'"),
    (family(expect="PARAM_INVALID"), 9, "unknown status 'PARAM_INVALID'"),
    (family(expect="{ascend1: ACLNN_SUCCESS}"), 9, "unknown SoC 'ascend1'"),
    (family(tier="quick"), 9, "unknown value 'quick'"),
    (family(dtype="bfloat16", soc="ascend910"), 9, "bfloat16, but none of ascend910 has it"),
    (OPEN + "      a: {}\n      b-c: {}\n", 15, "'b-c'"),
    (OPEN + "      a: {}\n      b: {tiers: smoke}\n", 15, "unknown key 'tiers'"),
    (OPEN + "      a: {}\n      b:\n        inputs:\n          output: uniform 0 x\n", 17, "high must be of kind"),
    ("  f:\n    why: a reason to be\n    why: a reason to be\n", 11, "duplicate key 'why'"),
    ("  F: {why: a reason to be}\n", 9, "'F'"),
    ("  f: 3\n", 9, "must be object"),
    ("  f: {why: x}\n", 9, "must have at least 2 characters"),
]  # fmt: skip


def test_a_family_of_a_file_s_own_draws(tmp_path: Path) -> None:
    """The places of its special values are inside small tensors too."""
    drawn = cases(tmp_path, "  f: {why: a reason to be, draw: 20}\n")
    assert len(drawn) == 20 * 5
    assert all(len(make_inputs(case, seed=0)) == 2 for case in drawn)


def test_no_call_is_drawn_twice(tmp_path: Path) -> None:
    """Calls of one input repeat when many are drawn; the id of the second one was an error."""
    file = tmp_path / "tanh.yaml"
    file.write_text(
        "aclnn_oracle: 1\noperator: aclnnTanh\ndefaults: {main: self, inputs: {self: normal 0 2}, output: {}}\n"
        "families:\n  f: {why: a reason to be, draw: 160}\n"
    )
    assert len({case.id for case in load(file)}) == 160 * 3


def test_an_offset_stands_beside_any_view_that_has_none(tmp_path: Path) -> None:
    inputs = "{gradOutput: {offset: 8}, output: {view: padded, offset: 3}}"
    (result,) = cases(tmp_path, family(dtype="float32", inputs=inputs, output="{view: strided, offset: 65600}"))
    views = {name: plan.view for name, plan in {**result.inputs, **result.outputs}.items() if plan is not None}
    assert set(views.values()) == {"offset:8", "padded+3", "strided+65600"}
    for view in ("as:7,1@0/21", "offset:2"):
        with pytest.raises(OracleError, match=r"has its own offset"):
            cases(tmp_path, family(dtype="float32", inputs=f'{{gradOutput: {{view: "{view}", offset: 2}}}}'))


def test_cover_keeps_every_pair_of_values(tmp_path: Path) -> None:
    """dtype x shape x attribute x two axes of variants: 3 * 4 * 2 * 3 * 2 combinations become few."""
    written = family(
        cover="pairs", dtype="floats", shape="[[4, 5], [3, 2], [6, 7], [2, 9]]", attrs="{dim: [0, -1]}",
        variants="[{a: {}, b: {inputs: {output: {view: strided}}}, c: {inputs: {output: {view: padded}}}}, "
        "{x: {}, y: {output: {view: transposed}}}]",
    )  # fmt: skip
    result = cases(tmp_path, written)
    rows = [(c.dtype, c.inputs["gradOutput"].shape, c.attrs["dim"], *c.id[:-1].split("-")[-2:]) for c in result]
    assert len(rows) < 20
    axes = [{row[i] for row in rows} for i in range(5)]
    assert [len(axis) for axis in axes] == [3, 4, 2, 3, 2]
    for i, j in combinations(range(5), 2):
        assert {(row[i], row[j]) for row in rows} == set(product(axes[i], axes[j]))
    views = {c.id[:-1].split("-")[-2]: c.inputs["output"].view for c in result}
    assert views == {"a": "contiguous", "b": "strided", "c": "padded"}


HEADS = [
    (HEAD.replace("aclnnSoftmaxBackward", "aclnnSoftmaxes"), 2, "unknown operator 'aclnnSoftmaxes'"),
    (HEAD.replace("aclnn_oracle: 1", "aclnn_oracle: 2"), 1, "1 was expected"),
    (HEAD.replace("aclnn_oracle: 1\n", ""), 1, "the first key must be"),
    (HEAD.replace("main: gradOutput", "main: self"), 4, "unknown input 'self'"),
    (HEAD.replace("gradOutput: normal, ", ""), 9, "input gradOutput is not described"),
    (HEAD.replace("operator:", "op:"), 1, "'operator' is missing"),
    (HEAD.replace("output: {}", "outputs: {}"), 7, "unknown key 'outputs'"),
    (HEAD.replace("output: {}", "output: {}\nclasses: some"), 8, "classes must be all"),
]


WRONG = [(HEAD, *row) for row in ERRORS] + [(head, family(), line, says) for head, line, says in HEADS]


@pytest.mark.parametrize(("head", "families", "line", "says"), WRONG, ids=[row[-1] for row in WRONG])
def test_every_error_names_file_and_line(tmp_path: Path, head: str, families: str, line: int, says: str) -> None:
    with pytest.raises(OracleError, match=rf"c\.yaml:{line}: ") as error:
        cases(tmp_path, families, head)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("shpe: [[1]]", "tiers: smoke"),
        ("shape: [[0.5]]", "tiers: smoke"),
        ("dtype: float12", "inputs: {output: norma 0 1}"),
    ],
)
def test_an_error_names_every_wrong_family(tmp_path: Path, one: str, other: str) -> None:
    body = "".join(f"  {name}:\n    why: a wrong family\n    {key}\n" for name, key in (("a", one), ("b", other)))
    with pytest.raises(OracleError) as error:
        cases(tmp_path, body)
    places = [line.split(": ")[0].rpartition("/")[2] for line in str(error.value).splitlines()]
    assert len(places) == 2
    assert all(place.startswith("c.yaml:") for place in places)


def test_equal_ids_in_two_files(tmp_path: Path) -> None:
    catalogue(tmp_path, family(), name="a.yaml")
    catalogue(tmp_path, family(), name="b.yaml")
    text = r"b\.yaml:9: the id softmax_backward/f\[float32-4x6\] is already used at .*a\.yaml:9"
    with pytest.raises(OracleError, match=text):
        load_all(tmp_path)


@pytest.mark.parametrize("slug", some(["tanh_backward", "softmax_backward", "sigmoid_backward"], 1))
def test_what_is_left_out_for_a_tier_has_no_case_in_it(slug):
    file = default_dir() / f"{slug}.yaml"
    whole = load(file)
    for tier in ("smoke", "standard"):
        few = load(file, tier=tier)
        assert len(few) < len(whole)
        assert [case.id for case in select(few, tier=tier)] == [case.id for case in select(whole, tier=tier)]
