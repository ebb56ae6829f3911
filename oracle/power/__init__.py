"""Scoring: which wrong kernels a catalogue notices, and which right ones it flags."""
