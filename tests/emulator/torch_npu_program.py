"""Runs the unmodified torch_npu on the emulated CANN: argv[1] names a check. Needs torch and torch_npu, nothing else.

The comparisons are with PyTorch on the CPU in float32. Tolerances: four units in the last place of the dtype for the
four operators and what autograd makes of them (sums of up to 35 terms).
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F
import torch_npu

ATEN = torch.ops.aten
ULPS = 4
SHAPE = (5, 7)


def close(actual: torch.Tensor, wanted: torch.Tensor) -> None:
    assert actual.device.type == "npu", actual.device
    tolerance = ULPS * torch.finfo(actual.dtype).eps
    torch.testing.assert_close(actual.detach().cpu().float(), wanted.detach().float(), rtol=tolerance, atol=tolerance)


def both(check, *tensors: torch.Tensor | None, dtype: torch.dtype) -> None:
    """Run an operator on the device in the dtype and on the CPU in float32."""
    given = [t if t is None or not t.is_floating_point() else t.to(dtype) for t in tensors]
    device = [None if t is None else t.npu() for t in given]
    close(check(*device), check(*(t if t is None or not t.is_floating_point() else t.float() for t in given)))


def tensors_on_the_device() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    on_device = x.npu()
    assert torch.npu.device_count() == 8
    assert str(on_device.device) == "npu:0"
    assert torch.equal(on_device.cpu(), x)
    assert torch.equal(on_device.t().contiguous().cpu(), x.t())
    assert torch.equal(on_device.half().float().cpu(), x)
    assert torch.equal(torch.ones(4, device="npu").cpu(), torch.ones(4))
    assert torch.equal(torch.zeros(4, device="npu:3").cpu(), torch.zeros(4))
    assert torch.equal(x.to("npu:1").to("npu:0").cpu(), x)
    assert torch.equal(x.npu().expand(4, 2, 3).cpu(), x.expand(4, 2, 3))
    assert str(on_device).startswith("tensor([[0., 1., 2.],\n        [3., 4., 5.]], device='npu:0')")


def streams_and_events() -> None:
    x = torch.rand(SHAPE)
    stream, before, after = torch.npu.Stream(), torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    before.record(stream)
    with torch.npu.stream(stream):
        doubled = x.npu() * 2
    after.record(stream)
    torch.npu.current_stream().wait_event(after)
    close(doubled, x * 2)
    after.synchronize()
    assert after.query()
    assert before.elapsed_time(after) >= 0
    close(x.pin_memory().to("npu", non_blocking=True), x)


def bce(reduction: int):
    return lambda g, x, y, w: ATEN.binary_cross_entropy_backward(g, x, y, w, reduction)


def nll(reduction: int, ignore: int):
    return lambda g, x, t, w, total: ATEN.nll_loss_backward(g, x, t, w, reduction, ignore, total)


def softmax(dim: int):
    return lambda g, y: ATEN._softmax_backward_data(g, y, dim, y.dtype)


def softmax_of_transposed_views(dim: int):
    return lambda g, y: ATEN._softmax_backward_data(g.t(), y.t(), dim, y.dtype)


def log_sigmoid(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The device gets the empty buffer that its own forward makes, the CPU the one it needs."""
    buffer = torch.empty(0, dtype=x.dtype, device="npu") if x.device.type == "npu" else torch.exp(-x.abs())
    return ATEN.log_sigmoid_backward(g, x, buffer)


def backward_operators() -> None:
    torch.manual_seed(0)
    gradient, probability = torch.randn(SHAPE), torch.rand(SHAPE) * 0.8 + 0.1
    label, weight, classes = torch.rand(SHAPE), torch.rand(SHAPE), torch.rand(SHAPE[1])
    target, total = torch.tensor([0, 1, 6, 3, 2]), torch.tensor(3.5)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for reduction in (0, 1, 2):
            for w in (None, weight):
                g = gradient if reduction == 0 else gradient[0, 0]
                both(bce(reduction), g, probability, label, w, dtype=dtype)
            for w in (None, classes):
                g = gradient[:, 0] if reduction == 0 else gradient[0, 0]
                both(nll(reduction, 3 * reduction), g, probability, target, w, total, dtype=dtype)
        for dim in (0, 1, -1):
            y = torch.softmax(gradient, dim)
            both(softmax(dim), gradient, y, dtype=dtype)
            both(softmax_of_transposed_views(dim), gradient, y, dtype=dtype)
        both(log_sigmoid, gradient, gradient * 3, dtype=dtype)
        both(ATEN.sigmoid_backward, gradient, probability, dtype=dtype)


def autograd() -> None:
    torch.manual_seed(1)
    x, label = torch.rand(SHAPE) * 0.8 + 0.1, torch.rand(SHAPE)
    target, classes = torch.randint(0, SHAPE[1], SHAPE[:1]), torch.arange(1.0, SHAPE[1] + 1)
    losses = {f"softmax {dim}": lambda a, dim=dim: (F.softmax(a, dim) * classes.to(a.device)).sum() for dim in (0, 1)}
    for reduction in ("none", "mean", "sum"):
        losses |= {
            f"bce {reduction}": lambda a, r=reduction: F.binary_cross_entropy(a, label.to(a.device), reduction=r),
            f"bce weight {reduction}": lambda a, r=reduction: F.binary_cross_entropy(
                a, label.to(a.device), weight=label.to(a.device), reduction=r
            ),
            f"nll {reduction}": lambda a, r=reduction: F.nll_loss(a, target.to(a.device), reduction=r),
            f"nll weight {reduction}": lambda a, r=reduction: F.nll_loss(
                a, target.to(a.device), weight=classes.to(a.device), reduction=r
            ),
            f"cross entropy {reduction}": lambda a, r=reduction: F.cross_entropy(a, target.to(a.device), reduction=r),
        }
    losses["logsigmoid"] = F.logsigmoid
    losses["sigmoid"] = torch.sigmoid
    losses["sigmoid of a transposed view"] = lambda a: torch.sigmoid(a.t())
    losses["logsigmoid mean"] = lambda a: F.logsigmoid(a).mean()
    losses["logsigmoid row sums"] = lambda a: F.logsigmoid(a).sum(1)
    for name, loss in losses.items():
        leaves = {device: x.clone().to(device).requires_grad_() for device in ("npu", "cpu")}
        values = {device: loss(leaf) for device, leaf in leaves.items()}
        for value in values.values():
            (value if value.dim() == 0 else value.sum()).backward()
        # A sum of up to 35 terms of both signs: its error is relative to the terms, which are of the order of 10.
        for actual, wanted in ((values["npu"], values["cpu"]), (leaves["npu"].grad, leaves["cpu"].grad)):
            torch.testing.assert_close(actual.detach().cpu(), wanted.detach(), rtol=1e-5, atol=1e-5, msg=name)
        assert leaves["npu"].grad.device.type == "npu"


def refused(call, *words: str) -> None:
    try:
        call()
    except RuntimeError as error:
        said = str(error)
    else:
        said = "nothing: it succeeded"
    for word in words:
        assert word in said, said


def errors() -> None:
    x = torch.rand(SHAPE).npu()
    wrong_reduction = "reduction is 7; it must be 0 (none), 1 (mean) or 2 (sum)"
    refused(lambda: ATEN.binary_cross_entropy_backward(x, x, x, None, 7), "161002", wrong_reduction)
    refused(lambda: torch.ones(1, device="npu:8"), "107001", "device 8: this process has devices 0..7")


def an_asynchronous_fault() -> None:
    x, gradient = torch.rand(SHAPE).npu(), torch.ones(SHAPE[0]).npu()
    target, total = torch.tensor([0, 1, 2, 3, 99]).npu(), torch.tensor(1.0).npu()
    words = ("507035", "target[4] is 99, outside the 7 classes")
    refused(lambda: ATEN.nll_loss_backward(gradient, x, target, None, 0, -100, total).cpu(), *words)


def just_in_time() -> None:
    """Before Atlas A2 torch_npu compiles operators when they are called, through aclop, unless told not to."""
    y = torch.softmax(torch.randn(SHAPE), 1)
    assert not torch_npu.npu.is_jit_compile_false()
    refused(lambda: softmax(1)(y.npu(), y.npu()).cpu(), "aclopCompileAndExecute", "does not have this function")


def just_in_time_off() -> None:
    torch_npu.npu.set_compile_mode(jit_compile=False)
    y = torch.softmax(torch.randn(SHAPE), 1)
    both(softmax(1), y, y, dtype=torch.float16)


def autograd_in_low_precision() -> None:
    """The losses in float16, bfloat16 and under autocast, of views too, on two streams: as exact as the type allows."""
    torch.manual_seed(2)
    x, label, weight = torch.rand(SHAPE) * 0.8 + 0.1, torch.rand(SHAPE), torch.rand(SHAPE)
    classes = torch.randint(0, SHAPE[1], SHAPE[:1])

    def like(a: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """A constant as the leaf's type holds it; the CPU's double has what the device has."""
        return value.to(low).to(a.device, a.dtype)

    losses = (
        lambda a: F.logsigmoid(a).sum(),
        lambda a: torch.sigmoid(a).sum(),
        lambda a: torch.sigmoid(a.t()).sum(),
        lambda a: F.logsigmoid(a.t()[1:]).sum(),
        lambda a: (F.softmax(a, 1) * like(a, weight)).sum(),
        lambda a: (F.softmax(a.t(), 1) * like(a, weight).t()).sum(),
        lambda a: F.cross_entropy(a, classes.to(a.device)),
        lambda a: F.nll_loss(a, classes.to(a.device), weight=like(a, weight[0]), reduction="sum"),
        lambda a: F.binary_cross_entropy(a, like(a, label), weight=like(a, weight)),  # last: autocast refuses it
    )
    stream = torch.npu.Stream()
    for low, rtol in ((torch.float16, 4e-3), (torch.bfloat16, 3e-2)):
        for number, loss in enumerate(losses):
            wanted = x.to(low).double().requires_grad_()
            loss(wanted).backward()
            leaves = [x.to(low).npu().requires_grad_() for _ in range(2)]
            loss(leaves[0]).backward()
            with torch.npu.stream(stream):
                stream.wait_stream(torch.npu.default_stream())
                loss(leaves[1]).backward()
            stream.synchronize()
            if number + 1 < len(losses):
                with torch.autocast("npu", dtype=low):
                    leaves.append(x.to(low).float().npu().requires_grad_())
                    loss(leaves[2]).backward()
                assert leaves[2].grad.dtype == torch.float32
            for leaf in leaves:
                told = f"loss {number} in {low}"
                actual = leaf.grad.cpu().double()
                torch.testing.assert_close(actual, wanted.grad, rtol=rtol, atol=rtol, msg=lambda m, t=told: f"{t}: {m}")


def unserved() -> None:
    """An operator that is not served is one error with both names, and the process goes on."""
    x = torch.rand(4, 4).npu()
    refused(lambda: x @ x, "561003", "does not serve aclnnMatmul (for aten::matmul)", "docs/emulator.md")
    refused(lambda: F.layer_norm(x, (4,)), "aclnnLayerNorm", "aten::layer_norm")
    refused(lambda: torch.randn(4, device="npu"), "aclnnInplaceNormal", "aten::randn")
    assert torch.equal((x * 2).cpu(), x.cpu() * 2)
    event = torch.npu.Event()
    event.record()
    event.synchronize()


globals()[sys.argv[1]]()
print("ok")
