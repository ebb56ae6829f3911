"""Spellings that occur in public ATK and TTK files: each is read as intended, and no row is lost."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign import atk, tensor, ttk
from ordinary import some

from oracle.catalogue import Case, make_inputs
from oracle.interop import load
from oracle.interop.foreign import Loaded

SHARED = Path(__file__).parents[3] / "shared" / "data" / "foreign"
SAMPLES = sorted(path for path in SHARED.glob("*tk_*") if path.suffix in (".json", ".csv"))
ND = {"name": "nd", "mean": [-2, 2], "std": [1, 3]}


def scalar(name: str, value: Any, kind: str = "scalar") -> dict[str, Any]:
    return {"name": name, "type": kind, "dtype": "bool" if kind == "attr" else "fp32", "range_values": value}


def data(case: Case) -> Any:
    """Return the inputs' values."""
    return make_inputs(case, seed=0)[0]


def only(loaded: Loaded) -> Case:
    assert not loaded.skipped, loaded.summary
    (case,) = loaded.cases
    return case


# ATK ------------------------------------------------------------------------------------------------------------------


def test_an_input_by_another_name_is_the_one_at_its_place(tmp_path: Path) -> None:
    given = (tensor("gradOutput", 1), tensor("x", 8), scalar("a", 0.5), scalar("selfIsResult", True, "attr"))
    case = only(atk(tmp_path, "aclnnLeakyReluBackward", *given))
    assert case.inputs["self"] is not None
    assert case.inputs["self"].data == {"gen": "constant", "value": 8}
    assert case.attrs["negativeSlope"] == 0.5
    assert "x is self, by its place" in case.why
    assert "a is negativeSlope, by its place" in case.why


def test_a_range_by_mean_and_std_is_normal_and_the_same_each_time(tmp_path: Path) -> None:
    given = tensor("gradOutput", ND), tensor("self", ND)
    first, second = (data(only(atk(tmp_path, "FastGeluBackward", *given))) for _ in "ab")
    values = first["self"]
    assert values is not None
    assert second["self"] is not None
    assert (values == second["self"]).all()
    assert abs(values.mean()) < 3
    assert 0.8 < values.std() < 3.5


def test_a_scalar_by_mean_and_std_is_one_number(tmp_path: Path) -> None:
    threshold = scalar("threshold", {"name": "nd", "mean": 5, "std": [0, 0]})
    case = only(
        atk(tmp_path, "SoftplusBackward", tensor("gradOutput", 1), tensor("x", 1), scalar("beta", 1), threshold)
    )
    assert case.attrs["threshold"] == 5


@pytest.mark.parametrize("values", [{"name": "beta", "mean": 0, "std": 1}, {"mean": 0}, {"mean": 0, "std": -1}])
def test_another_distribution_is_refused_by_its_case(tmp_path: Path, values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"atk.json:1: case 0: self: range_values"):
        atk(tmp_path, "FastGeluBackward", tensor("gradOutput", 1), tensor("self", values))


def test_values_for_an_operand_nobody_reads_stand_in_turn(tmp_path: Path) -> None:
    given = [tensor(name, values) for name, values in (("gradOutput", 1), ("self", 1), ("buffer", [1, 2, 3]))]
    buffer = data(only(atk(tmp_path, "aclnnLogSigmoidBackward", *given)))["buffer"]
    assert buffer is not None
    assert buffer[:4].tolist() == [1, 2, 3, 1]


def test_a_dtype_without_a_golden_is_a_reason(tmp_path: Path) -> None:
    loaded = atk(tmp_path, "FastGeluBackward", tensor("gradOutput", 1, "fp64"), tensor("self", 1, "fp64"))
    (line,) = loaded.unrun("ascend910b")
    assert not loaded.cases
    assert "atk.json:1" in line
    assert "float64" in line


# TTK ------------------------------------------------------------------------------------------------------------------


def kernel(folder: Path, name: str, shapes: str, dtypes: str, output: str, attributes: str = "{}") -> Loaded:
    cells = {"input_shapes": shapes, "input_dtypes": dtypes, "output_shapes": output, "output_dtypes": "('float32',)"}
    return ttk(folder, op_name=name, attributes=attributes, input_data_ranges="((-1, 1),)", **cells)


def test_one_shape_without_a_comma_is_one_shape(tmp_path: Path) -> None:
    shapes = "((21, 23), (21, 23))"
    loaded = kernel(tmp_path, "softmax_grad", shapes, "('float32', 'float32')", "((21, 23))", "{'axes': [0]}")
    case = only(loaded)
    (out,) = case.outputs.values()
    assert out is not None
    assert out.shape == (21, 23)
    assert case.attrs["dim"] == 0


@pytest.mark.parametrize("third", ["(25, 4)", "None"])
def test_a_kernels_further_input_is_left_out(tmp_path: Path, third: str) -> None:
    shapes, dtypes = f"((25, 4), (25, 4), {third})", "('float32', 'float32', 'float32')"
    case = only(kernel(tmp_path, "mish_grad", shapes, dtypes, "((25, 4),)"))
    assert set(case.inputs) == {"gradOutput", "self"}
    assert ("tanhx is left out" in case.why) is (third != "None")


def test_an_attribute_by_another_name_is_the_one_at_its_place(tmp_path: Path) -> None:
    shapes = "((4, 6), (4, 6))"
    case = only(kernel(tmp_path, "log_softmax_grad", shapes, "('float32',)", "((4, 6),)", "{'axes': [0]}"))
    assert case.attrs["dim"] == 0
    assert "axes is axis, by its place" in case.why


ACLNN = {
    "api_name": "aclnnThresholdBackward",
    "tensor_view_shapes": "((3, 5), (3, 5), (3, 5))",
    "tensor_dtypes": "('float16',)",
}


ATEN = {"api_name": "torch.ops.aten.threshold_backward", "tensor_view_shapes": "((3, 5), (3, 5))"}


@pytest.mark.parametrize(("cells", "threshold"), [
    (ACLNN | {"scalar_dtypes": "('float32')", "scalar_data_ranges": "(2, 2)"}, 2),  # a scalar without a comma
    (ATEN | {"tensor_dtypes": "('float16', 'float16')", "attributes": "{'threshold': -3.7}"}, -3.7),  # PyTorch's
])  # fmt: skip
def test_a_scalar_and_a_function_by_other_spellings(tmp_path: Path, cells: dict[str, str], threshold: float) -> None:
    case = only(ttk(tmp_path, **cells))
    assert (case.op, case.attrs["threshold"]) == ("aclnnThresholdBackward", threshold)


def test_a_row_for_other_socs_is_named_with_its_reason(tmp_path: Path) -> None:
    cells = ACLNN | {"tensor_dtypes": "('bfloat16',)"}
    loaded = ttk(tmp_path, **cells, scalar_dtypes="('float32')", scalar_data_ranges="(0, 0)")
    assert not loaded.unrun("ascend910b")
    (line,) = loaded.unrun("ascend910")
    assert "ttk.csv:2" in line
    assert "for other SoCs than ascend910" in line


# public files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", some(SAMPLES, 2), ids=lambda p: p.name)
def test_every_row_of_a_public_kind_is_a_case_or_has_a_reason(path: Path) -> None:
    text = path.read_text("utf-8")
    total = len(json.loads(text)) if path.suffix == ".json" else len(list(csv.reader(text.splitlines()))) - 1
    loaded = load(path)
    assert len(loaded.cases) + len(loaded.rows) == total
    for case in loaded.cases:
        assert all(v is None or isinstance(v, np.ndarray) for v in data(case).values())
