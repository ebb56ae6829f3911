"""ATK JSON and TTK CSV as cases: names, kernel order, what is skipped and counted, what is malformed."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import pytest
from foreign import DATA, SMALL, atk, tensor, ttk

from oracle.backends import load as load_backend
from oracle.case.one_case import run_case
from oracle.catalogue import make_inputs
from oracle.catalogue.data.layout import arrange, as_view
from oracle.interop import is_foreign_catalogue, kind_of, load
from oracle.interop.names import dtype_named, socs_named
from oracle.model.aclnn import PLATFORMS
from oracle.model.errors import OracleError
from oracle.operators import OPERATORS
from oracle.settings.settings import Settings

SHARED = Path(__file__).parents[3] / "shared" / "data"
SAMPLES = sorted(SHARED.glob("[at]tk/*tk_*"))


def cases(name: str, limit: int | None = None) -> dict:
    """Return the cases of a small file by the first word of their label."""
    return {c.id.partition("[")[2].partition("-")[0]: c for c in load(DATA / name, limit=limit).cases}


# what is read ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_every_case_is_a_case_or_counted(name):
    text = (DATA / name).read_text("utf-8")
    total = len(json.loads(text)) if name.endswith("json") else len(text.splitlines()) - 1
    loaded = load(DATA / name, limit=2000)
    assert len(loaded.cases) + loaded.skipped.total() == total
    assert len({c.id for c in loaded.cases}) == len(loaded.cases)


@pytest.mark.parametrize(
    ("name", "skipped"),
    [
        (
            "atk_small.json",
            [
                "larger than 2000 elements",
                "of other operators",
                "refused by the operator",
                "with targets outside [0, C): the result is unspecified",
            ],
        ),
        (
            "ttk_kernel_small.csv",
            ["not enabled", "of other operators", "with data from binary files", "with values the dtype cannot hold"],
        ),
        ("ttk_aclnn_small.csv", ["whose output elements share memory"]),
    ],
)
def test_skips_are_counted_by_reason(name, skipped):
    assert load(DATA / name, limit=2000).skipped == Counter(skipped)


def test_a_limit_is_inclusive():
    assert "larger" in str(load(DATA / SMALL[0], limit=4095).skipped)
    assert "larger" not in str(load(DATA / SMALL[0], limit=4096).skipped)


def test_atk_spellings():
    result = cases("atk_small.json")
    assert result["0"].inputs["output"].data == {"gen": "constant", "value": 0.5}  # `Output`
    assert result["7"].op == "aclnnSoftmaxBackward"  # no `aclnn`
    assert result["7"].inputs["gradOutput"].shape == ()
    assert result["8"].inputs["weightOptional"] is None
    assert result["8"].attrs == {"reduction": 1}  # [1]
    assert result["13"].attrs == {"reduction": 0, "ignoreIndex": -100}  # "none"
    assert result["11"].expect == {"default": "ACLNN_ERR_PARAM_INVALID"}
    assert result["9"].inputs["buffer"].shape == (0,)


def test_an_attribute_is_drawn_from_its_range_by_the_label(tmp_path):
    entry = json.loads((DATA / "atk_small.json").read_text("utf-8"))[1]
    entries = [dict(entry, id=i) for i in range(40)]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(entries), "utf-8")
    first = [c.attrs["dim"] for c in load(path).cases]
    assert set(first) == {-1, 0}
    path.write_text(json.dumps(entries[::-1]), "utf-8")
    assert [c.attrs["dim"] for c in load(path).cases] == first[::-1]


def test_kernel_order_is_mapped_to_aclnn():
    result = cases("ttk_kernel_small.csv")
    low = {n: p.data["low"] for n, p in result["sm"].inputs.items()}
    assert low == {"gradOutput": -1, "output": 0}  # the kernel's order is softmax, grad_softmax
    nll = result["nll"]
    assert [p.dtype for p in nll.inputs.values()] == ["bfloat16", "bfloat16", "int64", "bfloat16", "bfloat16"]
    assert nll.inputs["target"].data["values"] == [0, 1, 2, 3] * 3  # values written among the attributes
    assert nll.soc == ("ascend910b", "ascend950")
    assert result["ls_default"].soc == ("ascend910b", "ascend910_93")  # bfloat16, and -Ascend950
    assert result["bce"].inputs["weightOptional"] is None
    assert result["bce"].attrs == {"reduction": 0}


@pytest.mark.parametrize("op", [op for op in OPERATORS.values() if op.kernel is not None], ids=lambda op: op.slug)
def test_a_kernel_has_every_input_that_is_read_and_known_attributes(op):
    assert set(op.kernel.inputs) == {p.name for p in op.inputs() if not p.holds("nothing")}
    assert {name for name, _ in op.kernel.attributes.values()} <= set(op.names("attr"))


def test_atk_inputs_without_names_come_in_the_order_of_the_operator(blended, tmp_path):
    def plain(kind, dtype, values):
        return {"name": None, "type": kind, "dtype": dtype, "shape": None, "range_values": values}

    tensors = [tensor(None, values, "fp16", shape) for values, shape in (([-5, 5], (2, 3)),) * 2 + ((0, (1,)),)]
    scalar, *others = plain("scalar", "fp32", 3), plain("attr", "float", ["inf"]), plain("attr", "bool", True)
    others += [plain("attr", "str", "fast"), plain("attr", "int", "sum")]
    (case,) = atk(tmp_path, "BlendedBackward", *tensors, scalar, *others).cases
    assert case.attrs == {"scale": 3.0, "slope": math.inf, "twice": True, "mode": "fast", "how": 2}
    assert isinstance(case.attrs["scale"], float)
    with pytest.raises(OracleError, match="has no tensor as input 3 without a name"):
        atk(tmp_path, "BlendedBackward", *tensors, tensors[-1], *others)


def test_a_scalar_without_a_value_is_drawn_from_its_range_by_the_case(blended, tmp_path):
    ranged = {"scalar_dtypes": "('float32',)", "scalar_data_ranges": "((1, 3),)"}
    nothing = {"scalar_dtypes": "(None,)", "scalar_data_ranges": "(None,)"}
    rows = [{"testcase_name": name} | cells for name, cells in (("a", ranged), ("b", ranged), ("c", nothing))]
    one, two, three = (c.attrs["scale"] for c in ttk(
        tmp_path, *rows, api_name="aclnnBlendedBackward", tensor_view_shapes="((2,),(2,),(0,),(2,))",
        tensor_dtypes="('float16',)", attributes="{'slope': 1, 'twice': False, 'mode': 'plain', 'how': 0}",
    ).cases)  # fmt: skip
    assert 1 <= one <= 3
    assert 1 <= two <= 3
    assert one != two
    assert three is None


def test_strides_offsets_and_storage_reach_the_tensors():
    result = cases("ttk_aclnn_small.csv")
    inputs, specs = make_inputs(result["strided"], seed=0)
    assert specs["gradOutput"].strides == (4, 1)
    assert specs["gradOutput"].offset == 5
    assert specs["gradOutput"].storage_shape == (3, 6)
    assert specs["output"].format == "NCHW"
    assert specs["out"].strides == (1, 4)
    assert inputs["gradOutput"].strides == (16, 4)
    expanded, _ = make_inputs(result["expanded"], seed=0)
    assert expanded["gradOutput"].strides == (0, 2)
    assert (expanded["gradOutput"] == expanded["gradOutput"][0]).all()


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "span", "view"),
    [
        ((2, 3), (3, 1), 0, 6, "contiguous"),
        ((2, 3), (3, 1), 5, 11, "offset:5"),
        ((2, 3), (6, 2), 0, 12, "strided:2"),
        ((2, 3), (7, 1), 0, 14, "padded:4"),
        ((2, 3), (1, 2), 0, 6, "transposed"),
        ((2, 3, 4), (1, 2, 6), 0, 24, "permuted"),
        ((2, 3), (0, 1), 0, 3, "expanded:-2"),
        ((2, 3), (0, 0), 0, 1, "repeated"),
        ((2, 3), (6, 2), 5, 17, "strided:2+5"),
        ((2, 3), (1, 2), 65600, 65606, "transposed+65600"),
        ((), (), 0, 1, "contiguous"),
        ((), (), 2, 3, "offset:2"),
        ((2, 3), (4, 1), 5, 18, "as:4,1@5/18"),
        ((2, 1), (1, 9), 0, 2, "as:1,9@0/2"),
        ((), (), 1, 4, "as:@1/4"),
    ],
)
def test_a_layout_has_its_name_or_is_explicit(shape, strides, offset, span, view):
    assert as_view(shape, strides, offset, span) == view
    made = arrange(shape, view)
    assert (made.strides, made.offset, made.span) == (strides, offset, span)


# run ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_foreign_cases_run_and_pass_on_the_oracle(name):
    backend = load_backend("cpu")
    for case in load(DATA / name).cases:
        for soc in case.soc or PLATFORMS:
            line = run_case(case, backend, Settings(soc=soc))
            assert line.status == "pass", line


@pytest.mark.parametrize("name", SMALL)
def test_the_source_of_a_case_is_its_line(name):
    lines = (DATA / name).read_text("utf-8").splitlines()
    for case in load(DATA / name).cases:
        label = case.id.partition("[")[2].partition("-")[0]
        line = lines[int(case.source.rpartition(":")[2]) - 1]
        assert label in line


@pytest.mark.parametrize("path", SAMPLES or [None], ids=lambda p: p.name if p else "none")
def test_the_shipped_samples_read(path):
    if path is None:
        pytest.skip("the samples are not here")
    loaded = load(path)
    rows = len(json.loads(path.read_text("utf-8"))) if path.suffix == ".json" else None
    assert set(loaded.skipped) <= {"larger than 16777216 elements"}
    assert rows in (None, len(loaded.cases) + loaded.skipped.total())
    backend, settings = load_backend("cpu"), Settings()
    small = [c for c in loaded.cases if all(math.prod(p.shape) < 2**13 for p in c.inputs.values() if p)]
    assert {run_case(case, backend, settings).status for case in small} == {"pass"}


# recognising and refusing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('[{"id": 0, "aclnn_name": "aclnnX", "inputs": []}]', "atk"),
        ('\ufeff [\n {"aclnn_name": "X"}]', "atk"),
        ("testcase_name,op_name,input_shapes\n", "ttk"),
        ('\ufeff"testcase_name","api_name","tensor_view_shapes"\r\n', "ttk"),
        ("[]", None),
        ('{"aclnn_name": 1}', None),
        ('[1, "aclnn_name"]', None),
        ("name,value\n1,2\n", None),
        ("", None),
    ],
)
def test_kinds_are_told_by_content(tmp_path, text, kind):
    path = tmp_path / "file.json"
    path.write_text(text, "utf-8")
    assert kind_of(path) == kind
    assert is_foreign_catalogue(path) is (kind is not None)


def test_unreadable_files_are_nobodys(tmp_path):
    assert not is_foreign_catalogue(tmp_path / "absent.json")
    assert not is_foreign_catalogue(tmp_path)
    with pytest.raises(OracleError, match="no such file"):
        load(tmp_path / "absent.json")


def atk_case(**changes: object) -> str:
    entry = json.loads((DATA / "atk_small.json").read_text("utf-8"))[0]
    item = entry["inputs"][0]
    for key, value in changes.items():
        (item if key in item else entry)[key] = value
    return json.dumps([entry])


ATK = [
    (atk_case(dtype="fp17"), "case 0: gradOutput: unknown dtype 'fp17'"),
    (atk_case(shape=[2, -1]), r"shape is \[2, -1\]"),
    (atk_case(shape="4"), "shape is '4'"),
    (atk_case(shape=[True, 4]), r"shape is \[True, 4\]"),
    (json.dumps([{**(one := json.loads(atk_case())[0]), "inputs": [*one["inputs"], one["inputs"][0]]}]), "given twice"),
    (atk_case(range_values=[3, 1]), "low is above high"),
    (atk_case(range_values=[1, 2, 3]), "a number"),
    (atk_case(range_values="many"), "'many' is not a number"),
    (atk_case(range_values=None), "range_values is missing"),
    (atk_case(range_values=True), "True is not a number"),
    (atk_case(type="table"), "unknown type 'table'"),
    (atk_case(inputs=[]), "gradOutput of aclnnSoftmaxBackward is missing"),
    (atk_case(inputs={}), r"inputs is \{\}"),
    (atk_case(inputs=[3]), "an input must be an object"),
    ('[{"aclnn_name": 3}]', "aclnn_name is 3"),
    ('[{"aclnn_name": "aclnnX"}, 3]', "a case must be an object"),
    ('[{"aclnn_name": "SoftmaxBackward"}]', "a case needs an id or a name"),
    ('[\n{"aclnn_name": "aclnnX"\n', "x.json:3: not JSON"),
    ('[{"aclnn_name": "aclnnX"}\n{}]', "x.json:2: not JSON: expected ','"),
    ('[{"aclnn_name": "aclnnX"}', "not JSON"),
]
HEADER = (
    "testcase_name,op_name,input_shapes,input_dtypes,attributes,input_data_ranges,soc_series,"
    "output_shapes,output_dtypes"
)
TTK = [
    ('a,softmax_grad,"((2,),)","(\'float16\',)",,,,,', "input_shapes: 1 inputs; softmax_grad has"),
    ('a,softmax_grad,"((2,),(2,))","(\'float17\',)",,,,,', "input_dtypes: unknown dtype 'float17'"),
    ("a,softmax_grad,\"((2,),(2,))\",\"('float16',)\",\"{'axes': 'x'}\",,,,", "attributes: dim is 'x'"),
    ('a,softmax_grad,"((2,),(2,))","(\'float16\',)","{\'axes\': (0, 1)}",,,,', "attributes: dim is \\(0, 1\\)"),
    ('a,softmax_grad,"((2,),(2,))","(\'float16\',)",[1],,,,', "attributes: \\[1\\] must be a dict"),
    ('a,softmax_grad,"((2,),(2,))","(\'float16\',)",,"((1, 0),)",,,', "input_data_ranges: range \\(1, 0\\)"),
    ('a,softmax_grad,"((2,),(2,))","(\'float16\',)",,3,,,', "input_data_ranges: 3 must be a tuple"),
    ('a,softmax_grad,"((2,),(2,))","(\'float16\',)",,,Tesla,,', "soc_series: unknown SoC 'Tesla'"),
    ('a,softmax_grad,"((2,),(-2,))","(\'float16\',)",,,,,', "is no shape of one tensor"),
    ('a,softmax_grad,"((2,),(2,)","(\'float16\',)",,,,,', "is not a Python literal"),
    ("a,softmax_grad,__import__('os').getcwd(),\"('float16',)\",,,,,", "is not a Python literal"),
    ('a,softmax_grad,"((2,),(2,))","(dtype,)",,,,,', "is not a Python literal"),
    ('a,softmax_grad,"((2,),(2,))","(\'float16\',)",,,,,,,,,', "13 cells for 9 columns"),
    ('a,softmax_grad,"((2,)', "not CSV"),
]
MALFORMED = [("x.json", text, "x.json:", message) for text, message in ATK]
MALFORMED += [("x.csv", f"{HEADER}\n{row}\n", "x.csv:2", message) for row, message in TTK]


@pytest.mark.parametrize(("name", "text", "place", "message"), MALFORMED, ids=[row[-1] for row in MALFORMED])
def test_a_malformed_file_is_told_with_its_line_and_place(tmp_path, name, text, place, message):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(OracleError, match=message) as caught:
        load(path)
    assert place in str(caught.value)


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("tensor_view_strides", "((1,),(3,1),(3,1))", "does not fit the shape"),
        ("tensor_view_strides", "((-3,1),(3,1),(3,1))", "does not fit the shape"),
        ("tensor_view_strides", "(3,3,3)", "must be a tuple of integers"),
        ("tensor_view_offsets", "(-1,0,0)", "must be an integer of 0 or more"),
        ("tensor_storage_shapes", "((2,2),(2,3),(2,3))", r"\(2, 2\) holds 4 elements, the view ends at 6"),
        ("tensor_view_shapes", "((2,3),)", "1 tensors; aclnnSoftmaxBackward has gradOutput, output, out"),
        ("tensor_formats", "('NXYZ',)", "unknown format 'NXYZ'"),
    ],
)
def test_malformed_layouts_are_told(tmp_path, column, cell, message):
    cells = {"api_name": "aclnnSoftmaxBackward", "tensor_view_shapes": "((2,3),(2,3),(2,3))"}
    cells |= {"tensor_dtypes": "('float32',)", "attributes": "{'dim': 0}", column: cell}
    with pytest.raises(OracleError, match=message):
        ttk(tmp_path, **cells)


@pytest.mark.parametrize(
    ("names", "socs"),
    [
        (("Ascend910B",), ("ascend910b",)),
        (("Ascend910B1", "Ascend910_95"), ("ascend910b", "ascend950")),
        (("Ascend910A",), ("ascend910",)),
        (("Ascend910_9391",), ("ascend910_93",)),
        (("Ascend310B",), ()),
        (("-Ascend950",), tuple(s for s in PLATFORMS if s != "ascend950")),
        (("Ascend950", "-Ascend950"), ()),
    ],
)
def test_soc_series(names, socs):
    assert socs_named(names) == socs


def test_dtype_names():
    words = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "float": "float32", "FP16": "float16"}
    assert {word: dtype_named(word) for word in words} == words
