"""What a formula writes instead of a function of NumPy's, which knows numbers only and no symbols."""

from __future__ import annotations

# Functions of oracle.page, by NumPy's name.
FUNCTIONS = {
    **{n: n for n in ("exp", "expm1", "log", "log1p", "minimum", "maximum", "sign", "sqrt", "tanh", "where", "equal")},
    **{n: n for n in ("erf", "erfc")},  # of SciPy, which makes its functions as NumPy does
    "isnan": "is_nan",
    "isfinite": "is_finite",
}
# What is written without a function, by NumPy's name.
WRITTEN = {
    "add": "a + b",
    "subtract": "a - b",
    "multiply": "a * b",
    "divide": "a / b",
    "negative": "-a",
    "positive": "a",
    "absolute": "abs(a)",
    "fabs": "abs(a)",
    "reciprocal": "1 / a",
    "square": "a * a",
    "power": "a * a for a square, exp(b * log(a)) for a real power",
    "float_power": "a * a for a square, exp(b * log(a)) for a real power",
    "less": "a < b",
    "less_equal": "a <= b",
    "greater": "a > b",
    "greater_equal": "a >= b",
    "not_equal": "~equal(a, b)",
    "logical_and": "a & b",
    "bitwise_and": "a & b",
    "logical_or": "a | b",
    "bitwise_or": "a | b",
    "logical_not": "~a",
    "invert": "~a",
    "clip": "minimum(maximum(a, low), high)",
    "exp2": "exp(a * log(2))",
    "log2": "log(a) / log(2)",
    "log10": "log(a) / log(10)",
}

KNOWN = (
    f"oracle.page has {', '.join(dict.fromkeys(FUNCTIONS.values()))}; a formula is made of "
    "them, arithmetic, comparisons and abs"
)


def instead_of(name: str) -> str:
    """Say that a function of NumPy's, by its name, is not for formulas, and what is written instead."""
    told = f"NumPy's {name} does not take the symbols of a formula; "
    if name in FUNCTIONS:
        return f"{told}use {FUNCTIONS[name]} of oracle.page"
    return told + (f"write {WRITTEN[name]}" if name in WRITTEN else f"there is none like it: {KNOWN}")
