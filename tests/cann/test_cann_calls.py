"""Calls on the emulated CANN: the device gets the right arguments, everything is given back, faults are survived."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from ordinary import one_of_each_kind

from oracle.backends import load
from oracle.cann import CannError
from oracle.catalogue.data.layout import allocate, describe
from oracle.emulator import served
from oracle.model.call import Call, TensorSpec
from oracle.model.errors import DeviceFault, OracleError
from oracle.operators import OPERATORS, reference

SHAPE = (5, 7)
SOFTMAX = "aclnnSoftmaxBackward"


def softmax(view="contiguous", out_view=None, dim=-1, seed=0):
    """Return a right call with its tensors in guarded memory; ``view`` lays out the inputs."""
    random = np.random.default_rng(seed)
    views = {"gradOutput": view, "output": view, "out": out_view or "contiguous"}
    buffers = {name: allocate(SHAPE, "float32", v) for name, v in views.items()}
    for name in ("gradOutput", "output"):
        buffers[name].view[...] = random.normal(size=SHAPE)
    buffers["out"].base[...] = 7
    arrays = {name: buffer.view for name, buffer in buffers.items()}
    specs = {name: describe(SHAPE, "float32", v, "ND", None) for name, v in views.items()}
    out = {"out": arrays.pop("out")}
    return Call(SOFTMAX, "ascend910b", arrays, {"dim": dim}, out, specs)


def is_right(call):
    wanted = reference(call)
    return bool((np.abs(call.outputs["out"] - wanted.value) <= wanted.bound).all())


@pytest.mark.parametrize("view", ["contiguous", "offset:3", "strided:2", "padded:5", "transposed", "expanded:-1"])
def test_views_stay_views(emulator, device, tmp_path, view):
    emulator.trace(tmp_path / "trace")
    call = softmax(view, "contiguous" if view.startswith("expanded") else view)
    assert device.run(call).ok
    assert is_right(call)
    emulator.trace(None)
    (line,) = [text for text in (tmp_path / "trace").read_text().splitlines() if f"{SOFTMAX}GetWorkspaceSize" in text]
    wanted = call.spec("gradOutput")
    strides = "" if view in ("contiguous", "offset:3") else f" strides {wanted.strides}"
    offset = f" offset {wanted.offset}" if wanted.offset else ""
    assert re.search(r"gradOutput=(.*?), output=", line)[1] == f"float32{wanted.shape}{strides}{offset}"


def test_a_call_leaves_nothing_behind_but_the_workspace(emulator, device):
    device.run(softmax("transposed"))
    after_one = emulator.alive()
    assert (after_one["tensors"], after_one["executors"], after_one["streams"]) == (0, 0, 1)
    assert after_one["allocations"] <= 1
    for seed in range(5):
        device.run(softmax("transposed", seed=seed))
    assert emulator.alive() == after_one
    device.close()
    assert set(emulator.alive().values()) == {0}
    assert emulator.misuses() == 0, emulator.last_misuse()


def test_the_workspace_is_kept_and_grown(emulator, device):
    small, large = softmax("transposed"), softmax("transposed")
    large.inputs = {n: np.asfortranarray(np.ones((40, 9), np.float32)) for n in ("gradOutput", "output")}
    large.outputs, large.specs = {"out": np.zeros((40, 9), np.float32)}, {}
    counts = []
    for call in (small, small, large, small):
        before = emulator.calls("aclrtMalloc")
        assert device.run(call).ok
        counts.append(emulator.calls("aclrtMalloc") - before)
    tensors = 3
    assert counts == [tensors + 1, tensors, tensors + 1, tensors]


def changed(call, **changes):
    return Call(**{**vars(call), "specs": {}, **changes})


DOUBLES = TensorSpec((2, 3), "float64")
REFUSED = {
    "dim": (softmax(dim=9), 161002),
    "null tensors": (changed(softmax(), inputs={"gradOutput": None, "output": None}, outputs={"out": None}), 161001),
    "null workspaceSize": (changed(softmax(), null=frozenset({"workspaceSize"})), 161001),
    "null executor": (changed(softmax(), null=frozenset({"executor"})), 161001),
    "no data": (
        changed(softmax(), inputs={"gradOutput": DOUBLES, "output": DOUBLES}, outputs={"out": DOUBLES}),
        161002,
    ),
}


@pytest.mark.parametrize(("call", "code"), REFUSED.values(), ids=REFUSED)
def test_a_refused_call_has_the_code_and_cann_s_words(emulator, device, call, code):
    device.run(softmax())
    before = emulator.alive()
    status = device.run(call)
    assert status.code == code
    assert status.reason.startswith("EZ1001: ")
    assert emulator.alive() == before


def test_each_reason_is_that_call_s_own(device):
    reasons = [device.run(softmax(dim=dim)).reason for dim in (5, 6, 5)]
    assert reasons[0] == reasons[2] != reasons[1]
    assert all(reason.count("EZ1001") == 1 for reason in reasons)


def test_a_call_without_data_that_is_accepted_runs_no_kernel(emulator, device):
    spec = TensorSpec((2, 3), "float32")
    call = changed(softmax(), inputs={"gradOutput": spec, "output": spec}, outputs={"out": spec})
    before = emulator.calls(SOFTMAX)
    assert device.run(call).ok
    assert emulator.calls(SOFTMAX) == before
    assert emulator.alive()["executors"] == 0


PHASES = {
    f"{SOFTMAX}GetWorkspaceSize=561103": 561103,
    f"{SOFTMAX}GetWorkspaceSize=361001": 361001,
    f"{SOFTMAX}=561000": 561000,
    f"{SOFTMAX}=361001": 361001,
}
FAILURES = {
    "aclrtMalloc#1=207001": 207001,
    "aclrtMalloc#2=207001": 207001,
    "aclrtMalloc#4=207018": 207018,  # of the workspace
    "aclrtMemcpy#1=107000": 107000,
    "aclrtMemcpy#3=507033": 507033,
    "aclrtMemcpy#4=507015": 507015,  # copying the results back
    "aclrtMemset=107000": 107000,
    "aclCreateTensor#3=161002": 0,  # a null pointer
    "aclDestroyTensor#1=561000": 561000,
    "aclrtFree#1=507015": 507015,
    "aclrtSynchronizeStreamWithTimeout=507015": 507015,
    f"{SOFTMAX}=fault:507035": 507035,
    f"{SOFTMAX}=fault:507018": 507018,
}


@pytest.mark.parametrize(("fault", "code"), PHASES.items(), ids=PHASES)
def test_a_phase_s_code_is_the_status_and_the_next_call_runs(emulator, device, fault, code):
    emulator.inject(fault)
    assert device.run(softmax("transposed")).code == code
    survives(emulator, device)


@pytest.mark.parametrize(("fault", "code"), FAILURES.items(), ids=FAILURES)
def test_a_failure_of_the_runtime_is_told_and_the_next_call_runs(emulator, device, fault, code):
    emulator.inject(fault)
    with pytest.raises(CannError) as text:
        device.run(softmax("transposed"))
    assert text.value.code == code
    assert text.value.function in str(text.value)
    survives(emulator, device, lost=int(text.value.function == "aclDestroyTensor"))


def survives(emulator, device, lost=0):
    """Check that the next calls are right, and that only what could not be given back is left of the failed one."""
    emulator.clear()
    for seed in (1, 2):
        call = softmax("transposed", seed=seed)
        assert device.run(call).ok
        assert is_right(call)
    alive = emulator.alive()
    assert alive.pop("allocations") <= 1  # the workspace
    assert alive == {"tensors": lost, "executors": 0, "streams": 1}


def test_a_kernel_that_does_not_end_is_told_in_time_and_the_next_call_runs(emulator):
    with closing(load("aclnn", {"timeout": "0.3"})) as device:
        emulator.inject(f"{SOFTMAX}#1=hang")
        with pytest.raises(CannError, match="507046"):
            device.run(softmax())
        survives(emulator, device)


@pytest.mark.parametrize(("fault", "guards"), [("overrun", True), ("underrun", True), ("wrong", False)])
def test_what_a_kernel_writes_beside_its_output_is_seen_on_the_host(emulator, device, fault, guards):
    emulator.inject(f"{SOFTMAX}={fault}")
    call = softmax("contiguous", "offset:3")
    assert device.run(call).ok
    out = call.outputs["out"]
    memory = out.base
    view = np.zeros(memory.size // 4, bool) if memory.dtype == np.uint8 else np.zeros(memory.size, bool)
    start = (out.__array_interface__["data"][0] - memory.__array_interface__["data"][0]) // 4
    view[start : start + out.size] = True
    outside = memory.view(np.float32)[~view]
    assert bool((outside != 7).any()) is guards


def test_what_a_kernel_writes_beside_memory_that_has_no_guards_on_the_host_is_told(emulator, device):
    call = softmax()
    call.outputs = {"out": np.zeros(SHAPE, np.float32)}
    call.specs = {}
    for fault, where in (("overrun", "32 bytes behind it, the nearest 1 bytes"), ("underrun", "32 bytes before it")):
        emulator.inject(f"{SOFTMAX}={fault}")
        with pytest.raises(DeviceFault, match=f"{SOFTMAX} wrote on the device next to the memory of out: {where}"):
            device.run(call)
        emulator.clear()
    assert device.run(call).ok
    assert is_right(call)


def test_a_workspace_lies_between_guards_at_exactly_its_size_and_is_poisoned_each_time(emulator, device):
    device.run(softmax("transposed"))
    session = device._session()
    for size in (100, 7, 100):
        made = session.workspace(size)
        seen = np.zeros(size + 8, np.uint8)
        session.call("aclrtMemcpy", seen.ctypes.data, size + 8, made.address - 4, size + 8, 2)
        assert (seen[4:-4] == 0xFF).all()
        assert (np.delete(seen, slice(4, -4)) == 0xA5).all()
        assert made.trespass() == ""
        session.call("aclrtMemset", made.address + size, 1, 0, 1)
        assert made.trespass() == "1 bytes behind it, the nearest 1 bytes away"


def test_an_input_that_a_kernel_changes_is_changed_on_the_host(emulator, device):
    call = softmax()
    before = call.inputs["gradOutput"].copy()
    emulator.inject(f"{SOFTMAX}=input")
    device.run(call)
    assert not np.array_equal(call.inputs["gradOutput"], before)


def test_tensors_that_share_memory_share_it_on_the_device(emulator, device):
    both = np.random.default_rng(0).normal(size=(2, *SHAPE)).astype(np.float32)
    before = emulator.calls("aclrtMalloc")
    call = Call(SOFTMAX, "ascend910b", {"gradOutput": both[0], "output": both[1]}, {"dim": 0}, {})
    call.outputs["out"] = np.zeros(SHAPE, np.float32)
    assert device.run(call).ok
    assert is_right(call)
    assert emulator.calls("aclrtMalloc") - before <= 3  # two memories, and a workspace


def in_threads(work, count=4):
    """Run ``work(number)`` in threads at the same time; raise the first error of one, or after two minutes."""
    start = threading.Barrier(count)

    def begin(number):
        start.wait(10)
        work(number)

    pool = ThreadPoolExecutor(count)
    list(pool.map(begin, range(count), timeout=120))
    pool.shutdown()


def test_every_thread_has_its_own_stream_and_a_fault_in_one_is_survived_by_all(emulator, device):
    def work(number):
        for seed in range(20):
            call = softmax("transposed", seed=100 * number + seed)
            assert device.run(call).ok
            assert is_right(call)

    in_threads(work)
    assert emulator.alive()["streams"] == 4
    emulator.inject(f"{SOFTMAX}=fault:507015")
    with pytest.raises(CannError):
        device.run(softmax())
    emulator.clear()
    in_threads(work, 1)
    device.close()
    assert set(emulator.alive().values()) == {0}


def test_a_fault_in_one_thread_never_passes_for_another_s_result(emulator, device):
    """If the device is reset under a running call, the call reports it or its values are right."""
    device.run(softmax())
    wrong, messages = [], []

    def work(number):
        for seed in range(25):
            call = softmax("transposed", seed=100 * number + seed)
            try:
                status = device.run(call)
            except DeviceFault as fault:
                messages.append(str(fault))
            else:
                if status.ok and not is_right(call):
                    wrong.append((number, seed))

    for _ in range(30):  # the scheduler decides whether a call is running when another call's fault resets the device
        emulator.inject(";".join(f"{SOFTMAX}#{n}=fault:507015" for n in range(5, 100, 7)))
        in_threads(work)
        assert not wrong
        if any("fault of another call" in text for text in messages):
            break
    else:
        pytest.fail(f"no call met the fault of another thread in 30 rounds; {len(messages)} faults were told")
    emulator.clear()
    last = softmax()
    assert device.run(last).ok
    assert is_right(last)
    device.close()
    assert set(emulator.alive().values()) == {0}


def test_a_device_that_cannot_be_opened_is_told_and_opens_later(emulator):
    for function in ("aclrtSetDevice", "aclrtCreateStream"):
        device = load("aclnn")
        emulator.inject(f"{function}#1=507033")
        with pytest.raises(CannError, match=f"{function} returned 507033"):
            device.run(softmax())
        assert device.run(softmax()).ok
        device.close()
        assert set(emulator.alive().values()) == {0}
        emulator.clear()


def test_the_deterministic_mode_is_set_on_every_opening(emulator):
    device = load("aclnn", {"deterministic": "1"})
    before = emulator.calls("aclrtSetSysParamOpt")
    device.run(softmax())
    device.run(softmax())
    emulator.inject(f"{SOFTMAX}=fault:507015")
    with pytest.raises(CannError):
        device.run(softmax())
    emulator.clear()
    device.run(softmax())
    device.close()
    assert emulator.calls("aclrtSetSysParamOpt") - before == 2


@pytest.mark.parametrize("op", one_of_each_kind(op for op in served() if op in OPERATORS))
def test_both_phases_of_every_operator_are_declared(emulator, device, op):
    first, second = (device.cann.function(name) for name in (f"{op}GetWorkspaceSize", op))
    assert len(first.argtypes) == len(OPERATORS[op].parameters) + 2
    assert len(second.argtypes) == 4
    assert first.restype is second.restype


def test_the_process_s_cann_cannot_change(emulator, device, tmp_path, monkeypatch):
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64" / "libascendcl.so").write_bytes(b"")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    with pytest.raises(OracleError, match="start another"):
        load("aclnn")
