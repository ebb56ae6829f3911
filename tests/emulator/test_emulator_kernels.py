"""The C++ kernels and checks against the Python ones: two implementations of one description, written separately."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from emulated import Job, call
from ordinary import one_of_each_kind, some

from oracle.emulator import served
from oracle.model.aclnn import PLATFORMS
from oracle.model.call import FORMAT_ENUM, Call, TensorSpec
from oracle.model.dtypes import DTYPES
from oracle.operators import OPERATORS, compute, reference, validate

pytestmark = pytest.mark.slow

SERVED = {op: OPERATORS[op] for op in served() if op in OPERATORS}
FLOATS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
BCE, NLL, SOFTMAX, LOG_SIGMOID = (
    f"aclnn{n}Backward" for n in ("BinaryCrossEntropy", "NLLLoss", "Softmax", "LogSigmoid")
)
OF_OTHER_SHAPES = {
    "aclnnCrossEntropyLoss",
    "aclnnCrossEntropyLossGrad",
    "aclnnGlu",
    "aclnnGluBackward",
    "aclnnNLLLoss",
    "aclnnNLLLoss2d",
    "aclnnNLLLoss2dBackward",
    "aclnnPrelu",
    "aclnnPreluBackward",
}
OF_SOME_SOCS = {"aclnnFastGelu", "aclnnFastGeluBackward"}
OF_PROBABILITIES = {"aclnnBinaryCrossEntropy", "aclnnKlDiv"}


def poisoned(shape, dtype, view="contiguous"):
    """Return an output filled with a pattern; "strided": every second element of its storage."""
    if view == "contiguous":
        return np.full(shape, 7, dtype)
    return np.full((*shape[:-1], 2 * shape[-1]), 7, dtype)[..., ::2]


def softmax_of(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def arguments(op, dtype, rng, view):
    """Return random arguments of an operator; "strided" views have gaps, a transposed order, and an offset."""

    def tensor(values):
        values = np.asarray(values).astype(FLOATS[dtype])
        if view == "contiguous" or values.ndim < 2:
            return np.ascontiguousarray(values).copy()
        storage = np.full(2 * values.size + 3, 9, FLOATS[dtype])
        laid_out = storage[3:].reshape(*values.shape[::-1], 2)[..., 0].transpose(*reversed(range(values.ndim)))
        laid_out[...] = values
        return laid_out

    shape = (6, 9)
    gradient, x = rng.normal(size=shape), rng.normal(size=shape) * 3
    if op == BCE:
        reduction = int(rng.integers(3))
        probability, label, weight = rng.uniform(0.01, 0.99, (3, *shape))
        given = gradient if reduction == 0 else np.asarray(gradient[0, 0])
        tensors = {"gradOutput": given, "self": probability, "target": label, "weightOptional": weight}
        return {k: tensor(v) for k, v in tensors.items()} | {"reduction": reduction}
    if op == NLL:
        reduction = int(rng.integers(3))
        given = gradient[:, 0] if reduction == 0 else gradient[0, :1]
        tensors = {"gradOutput": given, "self": x, "weight": rng.uniform(0.5, 2, shape[1]), "totalWeight": [5.5]}
        target = {"target": rng.integers(0, shape[1], shape[0])}
        return {k: tensor(v) for k, v in tensors.items()} | target | {"reduction": reduction, "ignoreIndex": 3}
    if op == SOFTMAX:
        dim = int(rng.integers(-2, 2))
        return {"gradOutput": tensor(gradient), "output": tensor(softmax_of(x)), "dim": dim}
    if op == LOG_SIGMOID:
        return {"gradOutput": tensor(gradient), "self": tensor(x), "buffer": np.zeros(1, FLOATS[dtype])}
    parameters = OPERATORS[op].parameters  # element by element, or one value that is broadcast to all
    draw = rng.uniform if op in OF_PROBABILITIES else rng.normal
    return {p.name: tensor(draw(size=shape)) for p in parameters if p.kind == "input"} | {
        p.name: p.plain for p in parameters if p.kind == "attr"
    }


def attribute(p, rng):
    """Return a value that the attribute may have in a plain call."""
    if p.role in ("reduction", "choice"):
        return p.choices[rng.integers(len(p.choices))]
    if p.role == "flag":
        return bool(rng.integers(2))
    return p.plain * (0.5, 1.0, 2.0)[rng.integers(3)] if p.role == "number" else p.plain


def as_call(op, soc, params):
    kinds = {p.name: p.kind for p in OPERATORS[op].parameters}
    parts = {kind: {k: v for k, v in params.items() if kinds[k] == kind} for kind in ("input", "attr", "output")}
    return Call(op, soc, parts["input"], parts["attr"], parts["output"])


@pytest.mark.parametrize("soc", PLATFORMS)
def test_kernels_stay_within_the_strict_bound_of_the_golden(tree, soc):
    rng = np.random.default_rng(20)
    calls = []
    for op, operator in SERVED.items():
        for dtype in FLOATS if PLATFORMS[soc].bfloat16 else ("float16", "float32"):
            for view in ("contiguous", "strided") * 3:
                params = arguments(op, dtype, rng, view)
                if op not in (BCE, NLL, SOFTMAX):  # their tensors depend on their attributes
                    params |= {p.name: attribute(p, rng) for p in operator.parameters if p.kind == "attr"}
                shape = operator.output_shape(params)
                params[operator.output] = poisoned(shape, FLOATS[dtype], view if shape else "contiguous")
                if validate(op, soc=soc, **params).ok:
                    calls.append((op, params))
    assert {op for op, _ in calls} >= SERVED.keys() - OF_OTHER_SHAPES - OF_SOME_SOCS
    answers = call(tree, [Job(op, params) for op, params in calls], soc)
    for (op, params), answer in zip(calls, answers, strict=True):
        assert (answer.status, answer.launch, answer.sync) == (0, 0, 0), answer.message
        out = params[OPERATORS[op].output]
        wanted = reference(as_call(op, soc, params))
        actual = answer.after(OPERATORS[op].output, out).astype(np.float64)
        assert np.all(np.abs(actual - wanted.value) <= wanted.bound), (op, out.dtype)
        storage = answer.storage(OPERATORS[op].output, out.dtype)
        if storage.size > out.size:  # the gaps of a strided output still hold the pattern
            assert np.all(storage[1::2] == 7)
        for name, tensor in params.items():
            if isinstance(tensor, np.ndarray) and name != OPERATORS[op].output:
                assert np.array_equal(answer.after(name, tensor), tensor), f"{op} changed {name}"


@pytest.mark.parametrize("soc", PLATFORMS)
def test_arithmetic_kernels_give_the_bits_of_the_float32_profile(tree, soc):
    """BCE and NLL use only +, -, *, /, so the public forms leave no choice; others call exp or sum in some order."""
    rng = np.random.default_rng(21)
    dtypes = FLOATS if PLATFORMS[soc].bfloat16 else ("float16", "float32")
    calls = [(op, arguments(op, dtype, rng, "contiguous")) for op in (BCE, NLL) for dtype in dtypes for _ in range(4)]
    for _, params in calls:
        params["out"] = poisoned((6, 9), params["self"].dtype)
    answers = call(tree, [Job(op, params) for op, params in calls], soc)
    for (op, params), answer in zip(calls, answers, strict=True):
        wanted = compute(as_call(op, soc, params), numerics="kernel")
        assert np.array_equal(answer.after("out", params["out"]), wanted), op


@pytest.mark.parametrize("soc", PLATFORMS)
def test_float16_overflow_is_the_largest_finite_value_only_where_the_soc_saturates(tree, soc):
    f16 = np.float16
    params = {
        "gradOutput": np.full((2,), 60000, f16),
        "self": np.asarray([0, 1], f16),
        "target": np.asarray([1, 0], f16),
    }
    (answer,) = call(tree, [Job(BCE, params | {"reduction": 0, "out": (out := poisoned((2,), f16))})], soc)
    largest = 65504.0 if PLATFORMS[soc].saturates else np.inf
    assert answer.after("out", out).tolist() == [-largest, largest]


@pytest.mark.parametrize("soc", PLATFORMS)
def test_the_host_rounds_to_its_intermediate_type_before_the_cast(tree, soc):
    """float16 self, float32 out: NLL keeps 11 bits on ascend950 only, softmax everywhere."""
    f16, third = np.float16, np.float16(1 / 3)
    nll = {"gradOutput": np.asarray([third]), "self": np.zeros((1, 2), f16), "target": np.zeros(1, np.int64)}
    nll |= {"weight": np.asarray([third, third]), "totalWeight": np.ones(1, f16), "reduction": 0, "ignoreIndex": -100}
    softmax = {"gradOutput": np.full((1, 2), third), "output": np.asarray([[third, 0]], f16), "dim": 1}
    outs = [poisoned((1, 2), np.float32) for _ in range(2)]
    answers = call(tree, [Job(NLL, nll | {"out": outs[0]}), Job(SOFTMAX, softmax | {"out": outs[1]})], soc)
    got_nll, got_softmax = (float(a.after("out", o)[0, 0]) for a, o in zip(answers, outs, strict=True))
    product = np.float32(third) * np.float32(third)
    assert got_nll == (-np.float32(f16(product)) if PLATFORMS[soc].regbase else -product)
    assert got_softmax == f16(got_softmax)


NEXT_TO_TIES = {
    "bfloat16": np.array([2**30 + 2**22 + 1, 2**30 + 3 * 2**22 - 1], np.int32),  # float32 rounds them to the tie
    "float32": np.array([2**54 + 2**30 + 1, 2**54 + 3 * 2**30 - 1], np.int64),  # float64 does
    "bfloat16 of int64": np.array([2**62 + 2**54 + 1, 2**62 + 3 * 2**54 - 1], np.int64),  # float64 does
}


@pytest.mark.parametrize("named", NEXT_TO_TIES)
@pytest.mark.parametrize(
    ("op", "integers", "zero"), [("aclnnL1Loss", "target", "self"), ("aclnnL1LossBackward", "gradOutput", "target")]
)
def test_the_host_rounds_an_integer_once(tree, op, integers, zero, named):
    """These integers are next to ties of the type, around one number; rounded to the tie first, they go elsewhere."""
    kind, given = DTYPES[named.split()[0]].numpy, NEXT_TO_TIES[named]
    inputs = dict.fromkeys(OPERATORS[op].names("input"), np.ones(2, kind)) | {zero: np.zeros(2, kind), integers: given}
    name, out = OPERATORS[op].output, np.zeros(2, kind)
    (answer,) = call(tree, [Job(op, {**inputs, "reduction": 0, name: out})])
    low, high = given.tolist()
    assert answer.after(name, out).tolist() == [(low + high) // 2] * 2


@pytest.mark.parametrize("soc", PLATFORMS)
def test_a_target_that_is_no_class_faults_on_ascend950_and_is_a_zero_row_elsewhere(tree, soc):
    f32 = np.float32
    params = {"gradOutput": np.ones(2, f32), "self": np.zeros((2, 3), f32), "target": np.asarray([1, 99])}
    params |= {"weight": np.ones(3, f32), "totalWeight": np.ones(1, f32), "reduction": 0, "ignoreIndex": -100}
    ignored = params | {"ignoreIndex": 99}
    outs = [poisoned((2, 3), f32) for _ in range(2)]
    bad, good = call(tree, [Job(NLL, p | {"out": o}) for p, o in zip((params, ignored), outs, strict=True)], soc)
    wanted = [[0, -1, 0], [0, 0, 0]]
    assert good.after("out", outs[1]).tolist() == wanted
    if PLATFORMS[soc].regbase:
        assert bad.sync == 507035
        assert "target[1] is 99" in bad.message
    else:
        assert bad.after("out", outs[0]).tolist() == wanted


SHAPES = [(), (1,), (3,), (2, 3), (3, 2), (1, 3), (0,), (2, 0), (0, 3), (2, 3, 1), (1,) * 8, (1,) * 9]
DTYPE_NAMES = [*FLOATS] * 4 + [n for n in DTYPES if n != "str_"]


def random_call(op, rng):
    """Return a mostly valid call: one shape and dtype for all, then up to three tensors changed."""
    shape = SHAPES[rng.integers(len(SHAPES))]
    dtype = rng.choice(DTYPE_NAMES)
    params = {}
    for p in OPERATORS[op].parameters:
        if p.role == "choice":
            params[p.name] = int(rng.integers(-1, 3)) if p.c == "int64" else str(rng.choice([*p.words, "NONE", ""]))
        elif p.kind == "attr":
            params[p.name] = int(rng.integers(-4, 5))
        else:
            params[p.name] = TensorSpec(shape, dtype)
    tensors = [p.name for p in OPERATORS[op].parameters if p.kind != "attr"]
    if op == NLL and len(shape) in (1, 2):
        params["target"] = TensorSpec(shape[:1], rng.choice(["int64", "int32", "uint8", "int16"]))
        params["weight"], params["totalWeight"] = TensorSpec(shape[-1:], dtype), TensorSpec((1,), dtype)
        params["gradOutput"] = TensorSpec(rng.choice(np.asarray([shape[:1], (1,), ()], object)), dtype)
    for name in rng.choice(tensors, rng.integers(4)):
        change = rng.integers(4)
        old = params[name] or TensorSpec((), "float32")
        if change == 0:
            params[name] = None
        elif change == 1:
            params[name] = TensorSpec(SHAPES[rng.integers(len(SHAPES))], old.dtype)
        elif change == 2:
            params[name] = TensorSpec(old.shape, rng.choice(DTYPE_NAMES))
        else:
            params[name] = TensorSpec(old.shape, old.dtype, format=rng.choice([*FORMAT_ENUM]))
    null = tuple(rng.choice(["workspaceSize", "executor"], 1)) if rng.random() < 0.02 else ()
    return params, null


@pytest.mark.parametrize("soc", PLATFORMS)
def test_refusals_agree_with_the_python_validator_on_every_dtype_of_every_tensor(tree, soc):
    rng = np.random.default_rng(22)
    calls = []
    for op, operator in SERVED.items():
        params = {n: _spec(v) for n, v in arguments(op, "float32", rng, "contiguous").items()}
        params[operator.output] = TensorSpec((6, 9), "float32")
        tensors = [name for name, value in params.items() if isinstance(value, TensorSpec)]
        calls += [(op, params | {n: TensorSpec(params[n].shape, d)}) for n in tensors for d in DTYPES if d != "str_"]
    answers = call(tree, [Job(op, params, run=False) for op, params in calls], soc)
    for (op, params), answer in zip(calls, answers, strict=True):
        assert answer.status == validate(op, soc=soc, **params).code, (op, params, answer.message)


def _spec(value):
    return TensorSpec(value.shape, value.dtype) if isinstance(value, np.ndarray) else value


WITHOUT_KERNEL = {"aclnnCrossEntropyLoss": {561003}, "aclnnCrossEntropyLossGrad": {561003}}  # of products, or of types


@pytest.mark.parametrize("soc", some(list(PLATFORMS), 2))
@pytest.mark.parametrize("op", one_of_each_kind(SERVED))
def test_refusals_agree_with_the_python_validator_on_random_calls(tree, op, soc):
    rng = np.random.default_rng([len(op), *soc.encode()])
    calls = [random_call(op, rng) for _ in range(600)]
    answers = call(tree, [Job(op, params, null, run=False) for params, null in calls], soc)
    seen = set()
    for (params, null), answer in zip(calls, answers, strict=True):
        wanted = validate(op, soc=soc, **params, **dict.fromkeys(null))
        assert answer.status == wanted.code, (params, answer.message, wanted.reason)
        assert (answer.message == "") == wanted.ok
        seen.add(wanted.code)
    plain = {n: _spec(v) for n, v in arguments(op, "float32", rng, "contiguous").items()}
    plain |= {OPERATORS[op].output: TensorSpec((6, 9), "float32")}
    accepted = {0} if validate(op, soc=soc, **plain).ok else set()
    refusals = {161002, *WITHOUT_KERNEL.get(op, ())}
    assert 161001 in seen  # the sample contains every kind
    assert refusals & seen
    assert seen <= {0, 161001, 561103, *refusals}
    assert seen >= accepted


def test_messages_name_the_parameter_the_value_and_the_rule(tree):
    x = TensorSpec((2, 3), "float32")
    jobs = [
        Job(SOFTMAX, {"gradOutput": x, "output": x, "dim": 2, "out": x}, run=False),
        Job(SOFTMAX, {"gradOutput": x, "output": None, "dim": 0, "out": x}, run=False),
        Job(
            LOG_SIGMOID,
            dict.fromkeys(("gradOutput", "self", "buffer", "gradInput"), x) | {"self": TensorSpec((3,), "float32")},
            run=False,
        ),
        Job(BCE, dict.fromkeys(("gradOutput", "self", "target", "out"), x) | {"reduction": 7}, run=False),
    ]
    messages = [a.message for a in call(tree, jobs)]
    assert "dim is 2; it must be in [-2, 1]" in messages[0]
    assert "output is a null pointer" in messages[1]
    assert "self has shape (3,), gradInput has (2, 3)" in messages[2]
    assert "reduction is 7" in messages[3]
    assert all(m.startswith("EZ1001: [aclnn") for m in messages)
