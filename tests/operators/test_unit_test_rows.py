"""``validate`` returns every status that an upstream unit test asserts.

The rows are data next to a checkout (``shared/data/ut``, one JSON file per operator). Without it they are skipped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oracle
from oracle import TensorSpec
from oracle.model.aclnn import CODES, PLATFORMS
from oracle.model.dtypes import DTYPES
from oracle.operators.answers.registry import OPERATORS, operator_named
from oracle.operators.definition.operator import Operator

FOLDER = Path(__file__).resolve().parents[3] / "shared/data/ut"
NAMES = {d.acl: name for name, d in DTYPES.items()}
SLUGS = sorted(op.slug for op in OPERATORS.values() if (FOLDER / f"{op.slug}.json").exists())
SOCS = {
    "ASCEND910B": "ascend910b", "ASCEND910_93": "ascend910_93", "ASCEND950": "ascend950", "DAV_3510": "ascend950",
}  # fmt: skip
# Rows that only test tiling: they call the tiling function itself, so the API's own checks never see the arguments. If
# those checks refuse the call, the row cannot test tiling.
TILED_ON = {"Ascend950": "ascend950", None: "ascend910b"}
BEFORE_TILING = CODES["ACLNN_ERR_PARAM_INVALID"]
# The generated function sets the format before tiling looks, so NCHW is the same as ND. The other row is in a file that
# cannot have been compiled, since it calls an undeclared function.
NOT_BY_A_CALL = {"rms_norm_grad_regbase_err_invalid_format", "l2_gelu_v2_test_023_dim_gt_8"}
MISNAMED = {"dims": "dim"}  # one row of aclnnSwiGlu names the attribute wrongly
SCALARS = {"ACL_FLOAT16": np.float16, "ACL_UINT8": np.uint8, "ACL_INT8": np.int8, "ACL_INT32": np.int32}
WORDS = ("inf", "-inf", "nan")


def tensor(row: dict[str, Any] | None) -> Any:
    """Return the tensor of a row; without an aclDataType it is an array of a type without one."""
    if row is None:
        return None
    if row["dtype"] not in NAMES:
        return np.empty(row["shape"], "datetime64[s]")
    more = {key: row[key] for key in ("strides", "storage_shape") if row[key] is not None}
    layout = row["format"].removeprefix("ACL_").removeprefix("FORMAT_")
    return TensorSpec(row["shape"], NAMES[row["dtype"]], format=layout, offset=row["offset"], **more)


def arguments(op: Operator, row: dict[str, Any]) -> dict[str, Any]:
    kernel = op.kernel.attributes if tiled(row) and op.kernel is not None else {}
    names = MISNAMED | {name: own for name, (own, _) in kernel.items()}  # tiling has the kernel's names
    result = {n: tensor(v) for n, v in (*row["inputs"].items(), *row["outputs"].items())}
    for name, value in row["attrs"].items():
        kind = row.get("attr_dtypes", {}).get(name)
        value = float(value) if value in WORDS else value  # JSON has no infinity
        made = SCALARS[kind](value) if kind in SCALARS and value is not None else value
        result[names.get(name, name)] = made
    return result


def tiled(row: dict[str, Any]) -> bool:
    return row["suite"].endswith("Tiling")


def asserted(row: dict[str, Any]) -> dict[str, str]:
    """Return the status per SoC: for the harness's own SoC unless the row states more."""
    if tiled(row):
        return {TILED_ON[row["effective_soc_in_harness"]]: row["expected_status"]}
    by_soc = dict(row.get("expected_status_by_soc") or {})
    otherwise = by_soc.pop("otherwise", None)
    stated = {SOCS[k]: v for k, v in by_soc.items()}
    if otherwise is not None:
        stated = {soc: stated.get(soc, otherwise) for soc in ("ascend910", "ascend310p", *stated)}
    return stated or {SOCS[row["effective_soc_in_harness"]]: row["expected_status"]}


@pytest.mark.skipif(not SLUGS, reason=f"no unit-test rows in {FOLDER}")
@pytest.mark.parametrize("slug", SLUGS)
def test_asserted_statuses_are_answered(slug: str) -> None:
    op, wrong = operator_named(slug), []
    for row in json.loads((FOLDER / f"{slug}.json").read_text()):
        for soc, expected in asserted(row).items():
            assert soc in PLATFORMS
            if expected is None or row["name"] in NOT_BY_A_CALL:
                continue
            answer = oracle.validate(op.name, soc=soc, **arguments(op, row))
            if answer.code != CODES[expected] and not (tiled(row) and answer.code == BEFORE_TILING):
                wrong.append(f"{row['name']} on {soc}: {answer.name} ({answer.reason}), asserted {expected}")
    assert not wrong, "\n".join(wrong)
