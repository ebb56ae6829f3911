"""Cases as data: families in YAML become cases, and names and seed give the data of each case."""

from .data.case import TIERS, Case, make_inputs, spec_of_plan
from .loader import default_dir, digest, files, is_catalogue, load, load_all, of_unknown_operator, operator_of, select

__all__ = [
    "TIERS",
    "Case",
    "default_dir",
    "digest",
    "files",
    "is_catalogue",
    "load",
    "load_all",
    "make_inputs",
    "of_unknown_operator",
    "operator_of",
    "select",
    "spec_of_plan",
]
