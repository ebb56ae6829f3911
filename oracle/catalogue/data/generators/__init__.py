"""Data generators by name: what the values of a tensor are.

A generator is a function of a stream, a shape and a dtype name; its keyword parameters are what a catalogue may
write. Float generators return float64 (rounded to the dtype once, by the caller), index generators int64.
"""

from . import values
from .registry import GENERATORS, MODIFIERS, check

__all__ = ["GENERATORS", "MODIFIERS", "check", "values"]
