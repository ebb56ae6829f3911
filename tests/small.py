"""The beginning of a small catalogue, to which a test adds its families."""

from __future__ import annotations

HEAD = """\
aclnn_oracle: 1
operator: aclnnLogSigmoidBackward
defaults:
  main: self
  inputs: {gradOutput: normal 0 2, self: normal 0 3, buffer: uniform 0 1}
  output: {}
families:
"""
