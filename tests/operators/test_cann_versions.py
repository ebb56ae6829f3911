"""Changes between CANN's versions: the right answers of a SoC's kernel under each version."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from calls import call_of

from oracle import Call
from oracle.model.aclnn import CANN, PLATFORMS, platform
from oracle.numerics.orders.formula import is_public, named
from oracle.operators import OPERATORS, compute, operator, reference

NAN = np.nan
SOC = "ascend950"


def asked(name: str, cann: str, dtype: Any = np.float32, soc: str = SOC, **given: Any) -> Call:
    """Return a call with lists as inputs."""
    arrays = {n: np.array(given[n]).astype(dtype) for n in operator(name).names("input")}
    return call_of(name, soc, cann, **{**given, **arrays})


def answers(call: Call) -> list[float]:
    """Return the answers of the SoC's public kernel."""
    return np.asarray(compute(call), np.float64).reshape(-1).tolist()


def accepts(call: Call, value: float) -> bool:
    """Return whether a verdict accepts a value at the first element."""
    result = reference(call)
    if result.unspecified.reshape(-1)[0]:
        return True
    one, golden = np.float64(value), np.float64(result.value.reshape(-1)[0])
    return bool((np.isnan(one) and np.isnan(golden)) or abs(one - golden) <= result.bound.reshape(-1)[0])


def versions_of(name: str, value: float, dtype: Any = np.float32, **given: Any) -> list[str]:
    """Return CANN's versions under which a verdict on ascend950 accepts a value. Its own kernel's value must pass."""
    for cann in CANN:
        call = asked(name, cann, dtype, **given)
        assert accepts(call, answers(call)[0]), cann
    return [cann for cann in CANN if accepts(asked(name, cann, dtype, **given), value)]


def test_a_kernels_name_is_narrowed_to_a_soc_and_dated_by_the_last_version_that_has_it() -> None:
    forms = {"tbe": 1, "950": 2, "950@9.1": 3, "tbe_a2_a3": 4, "": 5}
    result = {soc: [named(forms, platform(soc, cann).form) for cann in CANN] for soc in PLATFORMS}
    assert result.pop(SOC) == [3, 3, 3, 2, 2]
    assert result.pop("ascend910_93") == [4] * 5
    assert all(every == [1] * 5 for every in result.values())
    assert named(forms, "950") == 2  # without a version: the newest
    assert [is_public(name) for name in ("950", "950@9.1", "tbe", "tbe_a2_a3", "quotient")] == [True] * 4 + [False]


def test_selus_zero_takes_the_upper_branch_up_to_9_1() -> None:
    given = {"gradOutput": [1.0], "result": [0.0]}
    assert versions_of("aclnnSeluBackward", np.float32(1.0507009873554805), **given) == ["8.5", "9.0", "9.1"]
    assert versions_of("aclnnSeluBackward", np.float32(1.7580993408473766), **given) == list(CANN)


def test_hardswishs_edges_are_counted_out_up_to_9_0() -> None:
    for x, outside, inside in ((3.0, 1.0, 1.5), (-3.0, 0.0, -0.5)):
        given = {"gradOutput": [1.0], "self": [x]}
        assert versions_of("aclnnHardswishBackward", outside, **given) == ["8.5", "9.0"]
        assert versions_of("aclnnHardswishBackward", inside, **given) == list(CANN)


def test_thresholds_nan_is_masked_in_every_release_unless_the_threshold_is_zero() -> None:
    given = {"gradOutput": [2.0], "self": [NAN]}
    assert versions_of("aclnnThresholdBackward", 0.0, threshold=1.0, **given) == list(CANN[:-1])
    assert versions_of("aclnnThresholdBackward", 0.0, threshold=0.0, **given) == []
    assert versions_of("aclnnThresholdBackward", 2.0, threshold=1.0, **given) == list(CANN)


def test_glus_gate_is_lost_in_bfloat16_up_to_9_1() -> None:
    import ml_dtypes

    call = {"gradOut": [1.0], "self": [2.0, 8.0], "dim": 0}
    lost = {}
    for cann in CANN:
        made = asked("aclnnGluBackward", cann, ml_dtypes.bfloat16, **call)
        result = reference(made)
        lost[cann] = bool(result.value[1] <= result.bound[1]), answers(made)[1]
    assert [cann for cann, (may, gate) in lost.items() if may and gate == 0] == ["8.5", "9.0", "9.1"]
    assert all(abs(gate - 6.7e-4) < 1e-5 and not may for may, gate in (lost["9.2"], lost["master"]))


def test_kl_divs_float16_inputs_are_widened_by_the_host_up_to_8_5() -> None:
    given = {"gradOutput": [1.0], "self": [1.0], "target": [1 / 3], "reduction": 0, "logTarget": True, "out": "float32"}
    for soc in ("ascend910b", SOC):
        result = {cann: reference(asked("aclnnKlDivBackward", cann, np.float16, soc, **given)) for cann in CANN}
        single = np.exp(np.float64(np.float16(1 / 3)))
        assert result["8.5"].golden[0] == -np.float32(single), soc
        assert {float(result[cann].golden[0]) for cann in CANN[1:]} == {-float(np.float16(single))}, soc


def test_an_operator_whose_checks_ask_for_the_version_says_so() -> None:
    for op in OPERATORS.values():
        assert bool(op.changed) == ("platform.since(" in inspect.getsource(op.checks)), op.name


def test_either_order_of_gelu_is_right_where_a_socs_is_not_known() -> None:
    x = np.array([4.9], np.float32)
    given = {"gradOutput": [1.0], "self": x}
    wide = {"aclnnGeluBackward": {}, "aclnnGeluBackwardV2": {"approximate": "tanh"}}
    for name, attrs in wide.items():
        bounds = {soc: reference(asked(name, "9.2", soc=soc, **given, **attrs)).bound[0] for soc in PLATFORMS}
        assert bounds["ascend910_93"] > 3 * bounds["ascend910b"] == 3 * bounds["ascend950"], name
        for soc in ("ascend910b", "ascend910_93"):
            value = answers(asked(name, "9.2", soc=soc, **given, **attrs))[0]
            assert accepts(asked(name, "9.2", soc="ascend910_93", **given, **attrs), value)
