"""Data generators by name: they make the values of a tensor.

A generator is a function of a stream, a shape and a dtype name. A catalogue can write its keyword parameters. Float
generators return float64 (the caller rounds once to the dtype), index generators int64.
"""

from . import values
from .registry import GENERATORS, MODIFIERS, check

__all__ = ["GENERATORS", "MODIFIERS", "check", "values"]
