"""Runs the unmodified torch_npu on the emulated CANN: argv[1] names a check, the suite's operators follow.

It needs only torch and torch_npu. It compares with PyTorch on the CPU in float32 or float64. The tolerance for single
operators is four units in the last place of the dtype. Compositions by autograd (sums of up to 24 terms) have their own
tolerance.
"""

from __future__ import annotations

import ctypes
import sys

import torch
import torch.nn.functional as F
import torch_npu

ATEN = torch.ops.aten
ACL = ctypes.CDLL("libascendcl.so")
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


# The values that PyTorch's losses take for a mask, or for class indices.
CHOICES = (
    lambda _, mask: ~mask,
    lambda _, mask: (~mask).sum(),
    lambda x, mask: x.masked_fill(mask, 7.5),
    lambda x, mask: torch.where(mask, x, -x),
    lambda x, mask: x.gather(1, mask.long() * 2),
    lambda x, mask: x.gather(-2, mask.long()),
)


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
    for choose in CHOICES:
        assert torch.equal(choose(on_device, on_device > 2).cpu(), choose(x, x > 2))


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
    """The device gets the empty buffer that its own forward makes; the CPU gets the buffer that it needs."""
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


# Odd multiples of 1/32 and 1/64: exact in every dtype, and no function has a kink at them or at their differences.
GENERATOR = torch.Generator().manual_seed(1)
X = (torch.randint(-62, 62, (4, 6), generator=GENERATOR) * 2 + 1) / 32
LABEL, WEIGHT = ((torch.randint(0, 32, X.shape, generator=GENERATOR) * 2 + 1) / 64 for _ in range(2))
SIGNS = 1.0 - 2 * torch.randint(0, 2, X.shape, generator=GENERATOR)
CLASSES, IMAGES = torch.tensor([5, 0, 3, 3]), torch.tensor([[[0, 1], [2, 1]], [[1, 1], [0, 2]]])

# Operators that no loss of PyTorch reaches through autograd on torch_npu, and the reason.
NOT_REACHED = {
    "aclnnCrossEntropyLossGrad": "F.cross_entropy is log_softmax and nll_loss",
    "aclnnGroupNormBackward": "F.group_norm takes aclnnGroupNorm first, which is not served to torch_npu",
    "aclnnHardswishBackward": "torch_npu takes aclnnHardswishBackwardV2 where CANN has it",
    "aclnnLayerNormBackward": "F.layer_norm takes aclnnFastLayerNorm first, which the emulated CANN does not serve",
    "aclnnRmsNormGrad": "F.rms_norm is composed; torch_npu.npu_rms_norm is no function of PyTorch's",
    "aclnnSeluBackward": "F.selu is F.elu with other numbers",
    "aclnnSwiGluGrad": "no aten function; torch_npu.npu_swiglu is no function of PyTorch's",
    "aclnnSwishBackward": "no aten function; F.silu is aclnnSiluBackward",
}


def on(a: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return value.to(a.device, a.dtype if value.is_floating_point() else None)


def in_place(activation):
    return lambda a: activation(a * 1, inplace=True)


def of_images(loss, **more):
    return lambda a, **options: loss(
        a.reshape(2, 3, 2, 2), on(a, IMAGES), **{k: on(a, v) for k, v in more.items()}, **options
    )


def fast_gelu(a: torch.Tensor) -> torch.Tensor:
    return torch_npu.fast_gelu(a) if a.device.type == "npu" else a * torch.sigmoid(1.702 * a)


def pair(loss, target: torch.Tensor, **more):
    """Return a loss of two tensors that takes a reduction; `more` are tensors or options."""
    return lambda a, **options: loss(
        a, on(a, target), **{k: on(a, v) if isinstance(v, torch.Tensor) else v for k, v in more.items()}, **options
    )


def activations() -> list:
    """Return pairs: the names of the suite's operators, one of which is the backward operator, and the function."""
    return [
        ("aclnnGeluBackward aclnnGeluBackwardV2", lambda a: F.gelu(a, approximate="tanh")),
        ("aclnnFastGeluBackward", fast_gelu),
        ("aclnnSiluBackward", F.silu),
        ("aclnnMishBackward", F.mish),
        ("aclnnSoftplusBackward", F.softplus),
        ("aclnnSoftplusBackward", lambda a: F.softplus(a, 2, 1)),
        ("aclnnEluBackward", lambda a: F.elu(a, 0.5)),
        ("aclnnEluBackward", F.selu),
        ("aclnnEluBackward", lambda a: F.celu(a, 0.5)),
        ("aclnnLeakyReluBackward", F.leaky_relu),
        ("aclnnThresholdBackward", F.relu),
        ("aclnnThresholdBackward", lambda a: F.threshold(a, 0.5, 0.25)),
        ("aclnnHardtanhBackward", F.hardtanh),
        ("aclnnHardtanhBackward", F.relu6),
        ("aclnnHardshrinkBackward", F.hardshrink),
        ("aclnnSoftshrinkBackward", F.softshrink),
        ("aclnnHardsigmoidBackward", F.hardsigmoid),
        ("aclnnHardswishBackwardV2", F.hardswish),
        ("aclnnPreluBackward", lambda a: F.prelu(a, a[0])),
        ("aclnnPreluBackward", lambda a: F.prelu(a, a[0, :1])),
        ("aclnnGluBackward", lambda a: F.glu(a, 0)),
        ("aclnnGluBackward", lambda a: F.glu(a, 1)),
        ("aclnnTanhBackward", torch.tanh),
        ("aclnnSigmoidBackward", torch.sigmoid),
        ("aclnnLogSigmoidBackward", F.logsigmoid),
        ("aclnnSoftmaxBackward", lambda a: F.softmax(a, 0)),
        ("aclnnSoftmaxBackward", lambda a: F.softmax(a, 1)),
        ("aclnnLogSoftmaxBackward", lambda a: F.log_softmax(a, 0)),
        ("aclnnLogSoftmaxBackward", lambda a: F.log_softmax(a, 1)),
        ("aclnnThresholdBackward", in_place(F.relu)),
        ("aclnnThresholdBackward", lambda a: F.threshold(a * 1, 0.5, 0.25, inplace=True)),
        ("aclnnLeakyReluBackward", in_place(F.leaky_relu)),
        ("aclnnEluBackward", in_place(F.elu)),
        ("aclnnEluBackward", in_place(F.celu)),
        ("aclnnSiluBackward", in_place(F.silu)),
        ("aclnnMishBackward", in_place(F.mish)),
        ("aclnnHardtanhBackward", in_place(F.hardtanh)),
        ("aclnnHardsigmoidBackward", in_place(F.hardsigmoid)),
        ("aclnnHardswishBackwardV2", in_place(F.hardswish)),
        ("aclnnTanhBackward", lambda a: torch.tanh_(a * 1)),
        ("aclnnSigmoidBackward", lambda a: torch.sigmoid_(a * 1)),
    ]


def losses() -> list:
    logits, bce = F.binary_cross_entropy_with_logits, F.binary_cross_entropy
    of_two = [
        ("aclnnMseLossBackward", pair(F.mse_loss, LABEL)),
        ("aclnnL1LossBackward", pair(F.l1_loss, LABEL)),
        ("aclnnSmoothL1LossBackward", pair(F.smooth_l1_loss, LABEL, beta=0.5)),
        ("", pair(F.huber_loss, LABEL)),  # torch_npu computes it on the CPU
        ("aclnnKlDivBackward", pair(F.kl_div, LABEL)),
        ("aclnnKlDivBackward", pair(F.kl_div, LABEL, log_target=True)),
        ("aclnnBinaryCrossEntropyWithLogitsBackward", pair(logits, LABEL)),
        ("aclnnBinaryCrossEntropyWithLogitsBackward", pair(logits, LABEL, weight=WEIGHT)),
        ("aclnnBinaryCrossEntropyWithLogitsBackward", pair(logits, LABEL, pos_weight=WEIGHT[0])),
        ("aclnnBinaryCrossEntropyWithLogitsBackward", pair(logits, LABEL, weight=WEIGHT, pos_weight=WEIGHT[0])),
        ("aclnnSoftMarginLossBackward", pair(F.soft_margin_loss, SIGNS)),
        ("aclnnNLLLossBackward", pair(F.nll_loss, CLASSES)),
        ("aclnnNLLLossBackward", pair(F.cross_entropy, CLASSES, weight=WEIGHT[0], ignore_index=3)),
        ("aclnnNLLLoss2dBackward", of_images(F.nll_loss)),
        ("aclnnNLLLoss2dBackward", of_images(F.cross_entropy, weight=WEIGHT[0, :3])),
        ("aclnnBinaryCrossEntropyBackward", pair(lambda a, *x, **y: bce((a + 4) / 8, *x, **y), LABEL)),
        ("aclnnBinaryCrossEntropyBackward", pair(lambda a, *x, **y: bce((a + 4) / 8, *x, **y), LABEL, weight=WEIGHT)),
    ]
    reductions = ("none", "mean", "sum")
    made = [(op, lambda a, f=f, r=r: f(a, reduction=r)) for op, f in of_two for r in reductions]
    return [*made, ("aclnnKlDivBackward", pair(F.kl_div, LABEL, reduction="batchmean"))]


def differentiate(loss, leaf: torch.Tensor, given: torch.Tensor) -> list[torch.Tensor]:
    """Return the loss of a tensor made of the leaf, and the gradient of its weighted sum with respect to the leaf."""
    value = loss(given)
    weights = torch.arange(1.0, value.numel() + 1).reshape(value.shape) / 32
    (value * on(value, weights)).sum().backward()
    return [value.detach(), leaf.grad]


def calls(operators: str) -> int:
    """Return the number of calls of the suite's operators so far."""
    torch.npu.synchronize()
    return sum(ACL.aclemuCallCount(name.encode()) for name in operators.split())


def assert_agrees(claim: str, found: list[torch.Tensor], wanted: list[torch.Tensor], tolerance: float) -> None:
    for what, actual, right in zip(("value", "gradient"), found, wanted, strict=True):
        assert actual.device.type == "npu", (claim, what)
        torch.testing.assert_close(
            actual.cpu().double(), right, rtol=tolerance, atol=tolerance, msg=lambda m, w=what: f"{claim}, {w}: {m}"
        )


def autograd() -> None:
    """Run each operator of the suite in float32, through the function of PyTorch that has it as its gradient."""
    torch_npu.npu.use_compatible_impl(True)  # GELU by erf then uses erf; without this, torch_npu uses tanh for both
    rows = [*activations(), *losses(), ("aclnnGeluBackwardV2", F.gelu)]
    reached = {name for operators, _ in rows for name in operators.split()}
    assert reached | set(NOT_REACHED) == set(sys.argv[2:]), reached ^ set(sys.argv[2:])
    for number, (operators, loss) in enumerate(rows):
        leaf, right = X.npu().requires_grad_(), X.double().requires_grad_()
        before = calls(operators)
        result = differentiate(loss, leaf, leaf)
        assert calls(operators) > before or not operators, f"row {number}: no call of {operators}"
        # Sums of 24 terms. Also, the kernels of Atlas A2 add 1e-6 to smooth L1's beta.
        assert_agrees(f"row {number}, {operators}", result, differentiate(loss, right, right), 1e-5)


def autograd_in_low_precision() -> None:
    """Run the same in float16 and bfloat16, with a transposed leaf on a second stream, and under autocast."""
    stream = torch.npu.Stream()
    for low, tolerance in ((torch.float16, 4e-3), (torch.bfloat16, 3e-2)):
        for number, (operators, loss) in enumerate([*activations(), *losses()]):
            text = f"row {number}, {operators}, {low}"
            right = X.double().requires_grad_()
            wanted = differentiate(loss, right, right)
            leaf = X.to(low).npu().requires_grad_()
            assert_agrees(text, differentiate(loss, leaf, leaf), wanted, tolerance)
            leaf = X.t().contiguous().to(low).npu().requires_grad_()
            with torch.npu.stream(stream):
                stream.wait_stream(torch.npu.default_stream())
                value, gradient = differentiate(loss, leaf, leaf.t())
            stream.synchronize()
            assert_agrees(f"{text}, a view on another stream", [value, gradient.t()], wanted, tolerance)
            if operators != "aclnnBinaryCrossEntropyBackward":  # autocast refuses it
                leaf = X.npu().requires_grad_()
                with torch.autocast("npu", dtype=low):
                    result = differentiate(loss, leaf, leaf)
                assert_agrees(f"{text}, autocast", result, wanted, tolerance)


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
    """Before Atlas A2, torch_npu compiles operators when they are called, through aclop, unless switched off."""
    y = torch.softmax(torch.randn(SHAPE), 1)
    assert not torch_npu.npu.is_jit_compile_false()
    words = ("aclopCompileAndExecute", "does not have this function")
    refused(lambda: (softmax(1)(y.npu(), y.npu()), torch.npu.synchronize()), *words)


def just_in_time_off() -> None:
    torch_npu.npu.set_compile_mode(jit_compile=False)
    y = torch.softmax(torch.randn(SHAPE), 1)
    both(softmax(1), y, y, dtype=torch.float16)


def unserved() -> None:
    """An operator that is not served gives one error with its names; the process continues."""
    x = torch.rand(4, 4).npu()
    refused(lambda: x @ x, "561003", "does not serve aclnnMatmul (for aten::matmul)", "docs/emulator.md")
    refused(lambda: F.layer_norm(x, (4,)), "aclnnLayerNorm", "aten::layer_norm")
    refused(lambda: torch.randn(4, device="npu"), "aclnnInplaceNormal", "aten::randn")
    goes_on(x)


def goes_on(x: torch.Tensor) -> None:
    for _ in range(2):
        assert torch.equal((x * 2).cpu(), x.cpu() * 2)
    event = torch.npu.Event()
    event.record()
    event.synchronize()
    assert event.query()


def unserved_by_the_older_interface() -> None:
    """If torch_npu has no aclnn function, the next wait for the device raises the error; the process continues."""
    x, words = torch.rand(4, 4).npu(), ("aclopCompileAndExecute", "operator Mish is not served", "docs/emulator.md")
    refused(lambda: torch_npu.npu_mish(x).cpu(), *words)
    goes_on(x)
    refused(lambda: (torch_npu.npu_mish(x), torch.npu.synchronize()), *words)
    goes_on(x)


globals()[sys.argv[1]]()
print("ok")
