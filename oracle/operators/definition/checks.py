"""The checks that validators are written with, and the promotion of types.

The primitives are those of opbase's ``op_error_check.h``. Shapes are view shapes and compared exactly (the rank
matters, () is not (1,)); a tensor is empty if a view dim is 0. A validator is a generator that yields one
:class:`Check` per check in the source's order; the first check with a status decides. A check's name states the checked
property. It is the same for every call, and unique within an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...model.aclnn import DOCUMENT, SOURCE, SUCCESS, Platform, Status, inner_nullptr, invalid, nullptr
from ...model.call import TensorSpec
from ...model.dtypes import DTYPES, DType, dtype_of
from ...model.errors import OracleError, suggestion

# op::PromoteType of opbase (``data_type_utils.h``): the common dtype that the host casts mixed inputs to.

FLOATING = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")
_COMPLEX = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
# The table has no initialisers for these: zero, which is float32 (inferred).
_BEYOND = (
    "float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu", "float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn",
)  # fmt: skip
# Pairs that have no common type in the reversed order.
_ONE_WAY = {
    ("uint16", "complex64"): "complex64", ("uint32", "complex64"): "complex64", ("uint64", "complex64"): "complex128",
    ("uint64", "complex128"): "complex128", ("uint16", "complex128"): "complex128",
    ("uint32", "complex128"): "complex128",
}  # fmt: skip


def promoted(*names: str) -> str | None:
    """Return the common dtype of some dtypes, combined from left to right; None (UNDEFINED) if there is none."""
    common: str | None = names[0]
    for name in names[1:]:
        common = None if common is None else _of_two(common, name)
    return common


def promoted_type(*names: str) -> Callable[[Mapping[str, Any], Platform], str]:
    """Return an operator's ``kernel_type``: the common dtype of the given inputs among ``names``, in this order."""

    def kernel_type(a: Mapping[str, Any], platform: Platform) -> str:
        return str(promoted(*[dtype_of(a[name].dtype).name for name in names if a.get(name) is not None]))

    return kernel_type


def _of_two(a: str, b: str) -> str | None:
    if a == b:
        return a
    if (a, b) in _ONE_WAY:
        return _ONE_WAY[a, b]
    known = (*FLOATING, *INTEGERS, *_COMPLEX)
    if not {a, b} <= {*known, *_BEYOND}:
        return None
    if a in _BEYOND or b in _BEYOND:
        return "float32"
    if a in _COMPLEX or b in _COMPLEX:
        return _of_complex(a, b)
    if a in FLOATING and b in FLOATING:
        return "float64" if "float64" in (a, b) else "float32"  # float16 and bfloat16 have float32 in common
    if a in FLOATING or b in FLOATING:
        return a if a in FLOATING else b
    if {a, b} == {"uint8", "int8"}:
        return "int16"
    return max(a, b, key=INTEGERS.index)


def _of_complex(a: str, b: str) -> str:
    """Return the common complex type: that of the common float type. Integers have no effect on it."""
    real = promoted(*(part for part in (_COMPLEX.get(a, a), _COMPLEX.get(b, b)) if part in FLOATING))
    return next(name for name, part in _COMPLEX.items() if part == real)


Args = Mapping[str, Any]  # tensors as TensorSpec or None, attributes as numbers
NOT_NULL = "no null pointer"  # the name of every check for null pointers
MAX_RANK = 8
FORMATS_OF_ROWS = ("ND", "NCL", "NCHW", "NHWC", "NCDHW", "DHWCN")
PRIVATE_FORMATS = ("NC1HWC0", "NC1HWC0_C04", "NDC1HWC0", "FRACTAL_Z", "FRACTAL_Z_3D", "FRACTAL_NZ")  # IsPrivateFormat


class Check(NamedTuple):
    """One check of a call: its name, its status (None if the call passes), and the authority behind it."""

    name: str
    status: Status | None
    authority: str = DOCUMENT


Checks = Iterator[Check]


class PageArguments(dict[str, Any]):
    """The arguments of a call for a function of a page (``field``). A look-up of a name that is no parameter's is an
    error. ``parameters``: all parameters, if some have no value yet."""

    def __init__(self, operator: str, values: Args, field: str = "checks", parameters: Iterable[str] = ()) -> None:
        super().__init__(values)
        self.operator, self.field, self.parameters = operator, field, tuple(parameters)

    def __missing__(self, name: object) -> Any:
        text = f"{self.operator}: its {self.field} {'ask' if self.field.endswith('s') else 'asks'} for {name!r}, which "
        if name in self.parameters:
            raise OracleError(f"{text}is not known yet when it is asked; known are: {', '.join(self)}")
        names = self.parameters or tuple(self)
        raise OracleError(f"{text}is no parameter of it{suggestion(name, names)}; it has: {', '.join(names)}")

    def get(self, name: str, default: Any = None) -> Any:
        """Return a parameter's value; the default if it has none yet."""
        return self[name] if name in self or name not in self.parameters else default


def source_only(made: Check) -> Check:
    """Mark a check that the source makes and no document mentions."""
    return made._replace(authority=SOURCE)


def source_unless(documented: bool, made: Check) -> Check:
    """Mark a check that the source makes. ``documented``: whether the document has it for this call."""
    return made if documented else source_only(made)


def check(name: str, problem: str | None) -> Check:
    """Return a check of the operator's own: 161002 with the problem, if there is one."""
    return Check(name, None if problem is None else invalid(_sentence(name, problem)))


def tiled(name: str, problem: str | None) -> Check:
    """Return a check of the tiling behind a generated interface: 561002 with the problem, if there is one."""
    return Check(name, None if problem is None else Status(561002, _sentence(name, problem)))


def _sentence(name: str, problem: object) -> str:
    """Return a page's problem. TypeError for one that is no text: the caller reports the page's line."""
    if isinstance(problem, str):
        return problem
    raise TypeError(f"the problem of check {name!r} is {problem!r}; it must be None if the call passes, else a text")


def unconfigured(platform: Platform, *socs: str) -> Check:
    """Check that the definition has the SoC: a generated interface finds no kernel on another one, 561003."""
    text = f"the definition has no kernel for {platform.soc}"
    return Check("a SoC of the definition", Status(561003, text) if platform.soc in socs else None)


def launched(name: str, problem: str | None) -> Check:
    """Return a check behind a hand-written interface, of a launch or its tiling: 561103 with the problem, if there is
    one."""
    return Check(name, None if problem is None else Status(561103, problem))


def not_null(a: Args, *names: str) -> Check:
    """Check for null pointers (OP_CHECK_NULL): 161001 for the first one."""
    return _not_null(a, names, nullptr)


def not_null_inside(a: Args, *names: str) -> Check:
    """Check for null pointers (CHECK_RET with ACLNN_ERR_INNER_NULLPTR): 561103 for the first one."""
    return _not_null(a, names, inner_nullptr)


def _not_null(a: Args, names: tuple[str, ...], answer: Callable[[str], Status]) -> Check:
    missing = next((name for name in names if a[name] is None), None)
    return Check(NOT_NULL, None if missing is None else answer(f"{missing} is a null pointer"))


def _among(a: Args, what: str, dtype: str | None, allowed: tuple[str, ...]) -> bool:
    """Return whether a dtype is allowed. Raises OracleError, instead of False, if ``allowed`` is no tuple of dtypes."""
    if not isinstance(allowed, str) and dtype in allowed:
        return True
    text = f"{getattr(a, 'operator', 'a page')}: its checks ask whether the dtype of {what} is in {allowed!r}"
    if isinstance(allowed, str):
        raise OracleError(f"{text}, which is a text; it must be a tuple of dtypes, as ({allowed!r},)")
    wrong = next((each for each in allowed if each not in DTYPES), None)
    if wrong is not None:
        raise OracleError(f"{text}: {wrong!r} is no dtype{suggestion(wrong, DTYPES)}")
    return False


def dtype_in(a: Args, name: str, allowed: tuple[str, ...]) -> Check:
    """Check that a tensor's dtype is allowed (OP_CHECK_DTYPE_NOT_SUPPORT)."""
    spec: TensorSpec = a[name]
    if spec.dtype is not None and _among(a, name, spec.dtype.name, allowed):
        return check(f"dtype of {name}", None)
    listed = ", ".join(allowed) if allowed else "none on this product"
    return check(f"dtype of {name}", f"{name} has dtype {spec.dtype_name}; supported: {listed}")


def dtypes_in(a: Args, names: tuple[str, ...], allowed: tuple[str, ...]) -> Checks:
    """Check of each of some tensors that its dtype is allowed."""
    for name in names:
        yield dtype_in(a, name, allowed)


def bfloat16_where_supported(a: Args, name: str, platform: Platform) -> Check:
    """Refuse bfloat16 on the products without it."""
    spec: TensorSpec = a[name]
    refused = not platform.bfloat16 and spec.dtype is not None and spec.dtype.name == "bfloat16"
    problem = f"{name} has dtype bfloat16, which {platform.soc} does not support" if refused else None
    return check(f"bfloat16 {name} where the product has it", problem)


def same_dtype(a: Args, name: str, other: str) -> Check:
    """Check that two tensors have one dtype (OP_CHECK_DTYPE_NOT_SAME)."""
    one, two = a[name], a[other]
    title = f"{name} and {other} of one dtype"
    if one.dtype is not None and one.dtype == two.dtype:
        return Check(title, None)
    return check(title, f"{name} has dtype {one.dtype_name}, {other} has {two.dtype_name}; they must be equal")


def same_dtypes(a: Args, names: tuple[str, ...], other: str) -> Checks:
    """Check of each of some tensors that it has another one's dtype."""
    for name in names:
        yield same_dtype(a, name, other)


def promotes(a: Args, names: tuple[str, ...], allowed: tuple[str, ...]) -> Check:
    """Check that the dtypes of some tensors have a common dtype and that it is allowed."""
    kinds = [a[name].dtype_name for name in names]
    common = promoted(*kinds)
    title = f"common dtype of {' and '.join(names)}"
    if _among(a, " and ".join(names), common, allowed):
        return Check(title, None)
    given = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    if common is None:
        return check(title, f"{given}: these dtypes have no common one")
    return check(title, f"{given}: the common dtype is {common}; supported: {', '.join(allowed)}")


def can_cast(a: Args, source: str, target: str) -> Check:
    """Check a cast (OP_CHECK_RESULT_DTYPE_CAST_FAILED): refuse complex to real, float to integer, non-bool to bool."""
    return _cast(a[source].dtype, source, a[target].dtype, target)


def can_cast_promoted(a: Args, names: tuple[str, ...], target: str) -> Check:
    """Check the cast of the common dtype of some tensors."""
    common = promoted(*(a[name].dtype_name for name in names))
    return _cast(DTYPES.get(common or ""), f"the common dtype of {' and '.join(names)}", a[target].dtype, target)


def _cast(source: DType | None, what: str, target: DType | None, name: str) -> Check:
    fits = source is not None and target is not None and castable(source, target)
    if fits:
        return Check(f"{what} casts to {name}", None)
    names = [d.name if d is not None else "(no aclDataType)" for d in (source, target)]
    problem = f"{what} of dtype {names[0]} cannot be cast to {name} of dtype {names[1]}"
    return check(f"{what} casts to {name}", problem)


def castable(a: DType, b: DType) -> bool:
    """Return CanCast of opbase. Its IsIntegralType does not include int4 and uint1, so floats cast to them."""
    integer, floating = ("int", "uint"), ("float", "narrow")
    if a.kind == "complex" and b.kind != "complex":
        return b.kind == "string"
    if a.kind in floating and b.kind in integer and b.name not in ("int4", "uint1"):
        return False
    return not (b.kind == "bool" and a.kind != "bool")


def scalar_in(a: Args, name: str, allowed: tuple[str, ...]) -> Check:
    """Check that the dtype of an aclScalar is allowed."""
    kind = scalar_type(a[name])
    problem = f"{name} is a scalar of dtype {kind}; supported: {', '.join(allowed)}"
    return check(f"dtype of {name}", None if _among(a, name, kind, allowed) else problem)


def scalar_casts(a: Args, name: str, target: str = "float32") -> Check:
    """Check that the dtype of an aclScalar casts to another: complex does not cast to real."""
    kind = DTYPES.get(scalar_type(a[name]))
    fits = kind is not None and castable(kind, DTYPES[target])
    problem = f"{name} is a scalar of dtype {scalar_type(a[name])}, which does not cast to {target}"
    return check(f"{name} casts to {target}", None if fits else problem)


# The dtype of an aclScalar made from a Python number, as in torch_npu.
OF_PYTHON: dict[type, str] = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


def scalar_type(value: Any) -> str:
    """Return the dtype of the aclScalar that a Python or NumPy number becomes."""
    if isinstance(value, np.generic):
        return str(value.dtype.name)
    return OF_PYTHON[type(value)]


def same_shape(a: Args, name: str, other: str) -> Check:
    """Check that two tensors have one shape (OP_CHECK_SHAPE_NOT_EQUAL)."""
    one, two = a[name].shape, a[other].shape
    problem = None if one == two else f"{name} has shape {one}, {other} has {two}; they must be equal"
    return check(f"{name} and {other} of one shape", problem)


def same_format(a: Args, name: str, other: str) -> Check:
    """Check that two storage formats are equal; any format is allowed."""
    one, two = a[name].format, a[other].format
    problem = None if one == two else f"{name} has format {one}, {other} has {two}; they must be equal"
    return check(f"{name} and {other} of one format", problem)


def public_format(a: Args, name: str) -> Check:
    """Refuse a private storage format of CANN (IsPrivateFormat)."""
    result = a[name].format
    private = result in PRIVATE_FORMATS or result.startswith("FRACTAL_NZ_")
    return check(f"public format of {name}", f"{name} has the private format {result}" if private else None)


def dtypes_of_a_row(a: Args, names: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Check:
    """Check the dtypes of some tensors: a generated interface looks them up at once, in the rows of the definition."""
    kinds = tuple(a[name].dtype_name for name in names)
    text = f"{', '.join(names)} are {', '.join(kinds)}; no row of the definition has these dtypes"
    return check("dtypes of one row of the definition", None if kinds in rows else text)


def format_of_a_row(a: Args, name: str) -> Check:
    """Check the format: a generated interface reads these as ND, and finds no row of the definition for others."""
    result = a[name].format
    text = f"{name} has the format {result}; no row of the definition has it, known are: {', '.join(FORMATS_OF_ROWS)}"
    return check(f"format of {name} in a row", None if result in FORMATS_OF_ROWS else text)


def max_rank(a: Args, name: str) -> Check:
    """Check the rank (OP_CHECK_MAX_DIM): at most 8 dims."""
    rank = a[name].rank
    problem = None if rank <= MAX_RANK else f"{name} has rank {rank}; at most {MAX_RANK} is supported"
    return check(f"rank of {name}", problem)


def max_ranks(a: Args, *names: str) -> Checks:
    """Check the rank of each of some tensors."""
    for name in names:
        yield max_rank(a, name)


def has_axes(a: Args, *names: str) -> Check:
    """Refuse rank 0, which is not among a document's ranks."""
    without = next((name for name in names if not a[name].rank), None)
    return check("rank of at least 1", None if without is None else f"{without} has rank 0; the document begins with 1")


def broadcasts_to(a: Args, name: str, target: str) -> Check:
    """Check that BroadcastInferShape(name, target) gives the target's own shape; so a higher rank fails too."""
    own, wanted = a[name].shape, a[target].shape
    fits = broadcast_shape(own, wanted) == wanted
    problem = None if fits else f"{name} of shape {own} does not broadcast to {target}'s shape {wanted}"
    return check(f"{name} broadcasts to {target}", problem)


def one_element(a: Args, name: str) -> Check:
    """Check that a tensor, of any rank, has one element."""
    spec = a[name]
    problem = f"{name} has shape {spec.shape}; it must have exactly one element"
    return check(f"{name} of one element", None if spec.size == 1 else problem)


def broadcast_together(a: Args, names: tuple[str, ...], out: str) -> Check:
    """Check that some tensors have a common shape and that the output has exactly this shape."""
    common, given = together(a, names)
    title = f"{out} of the common shape of {' and '.join(names)}"
    if common is not None and a[out].shape == common:
        return Check(title, None)
    if common is None:
        return check(title, f"{given}: these shapes do not broadcast")
    wrong = f"{out} has shape {a[out].shape}; it must be {common}, the common shape of {given}"
    return check(title, wrong)


def together(a: Args, names: Iterable[str]) -> tuple[tuple[int, ...] | None, str]:
    """Return the common shape of some tensors, None if there is none, and a text of their shapes."""
    shapes = {name: a[name].shape for name in names}
    common: tuple[int, ...] | None = ()
    for shape in shapes.values():
        common = None if common is None else broadcast_shape(common, shape)
    return common, ", ".join(f"{name} {shape}" for name, shape in shapes.items())


def broadcast_shape(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the common shape of two right-aligned shapes; None if there is none. 1 and 0 give 0."""
    if one == other:
        return one
    rank = max(len(one), len(other))
    pairs = zip((1,) * (rank - len(one)) + one, (1,) * (rank - len(other)) + other, strict=True)
    common = [(b if a == 1 else a) if a == b or 1 in (a, b) else None for a, b in pairs]
    return None if None in common else tuple(n for n in common if n is not None)


def in_range(a: Args, name: str, low: int, high: int) -> Check:
    """Check that an attribute is in [low, high]."""
    value = a[name]
    problem = None if low <= value <= high else f"{name} is {value}; it must be in [{low}, {high}]"
    return check(f"range of {name}", problem)


def present(a: Args, *names: str) -> tuple[str, ...]:
    """Return those of some tensors that are no null pointers."""
    return tuple(name for name in names if a[name] is not None)


def is_empty(*specs: TensorSpec) -> bool:
    """Return whether any of the tensors has a view dim of 0."""
    return any(0 in spec.shape for spec in specs)


def ends_if_empty(a: Args, *names: str, name: str = "an empty call succeeds") -> Check:
    """End the call here with success if any of the tensors is empty."""
    return Check(name, SUCCESS if is_empty(*(a[n] for n in names)) else None)


def ends_if_all_empty(a: Args, *names: str) -> Check:
    """End the call here with success if all of the tensors are empty."""
    return Check("a call of empty outputs succeeds", SUCCESS if all(is_empty(a[n]) for n in names) else None)


def float_types(platform: Platform, *more: str) -> tuple[str, ...]:
    """Return the float types of most operators on a SoC, with ``more`` before bfloat16, which some products lack."""
    return ("float32", "float16", *more, *(("bfloat16",) if platform.bfloat16 else ()))
