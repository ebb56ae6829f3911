# ruff: noqa: E501 - the lines of a catalogue
"""Stated inputs: a few cases per operator on which every published defect shows."""

from __future__ import annotations

from pathlib import Path

BCE = """
aclnn_oracle: 1
operator: aclnnBinaryCrossEntropyBackward
defaults:
  main: self
  attrs: {reduction: 0}
  inputs: {gradOutput: nonzero 0.5 4, self: probabilities 0.05, target: probabilities 0.02, weightOptional: uniform 0.25 3}
  output: {}
families:
  plain: {why: results of every size, dtype: floats, shape: [[5, 9]], attrs: {reduction: [0, 1, 2]}}
  unweighted: {why: no weight, dtype: float32, shape: [[7]], inputs: {weightOptional: null}}
  edges:
    why: self at 0, at 1 and beyond, targets near it
    dtype: floats
    shape: [[3, 8]]
    inputs:
      self: {gen: cycle, values: [0.0, 1.0, -1.0, 2.0, 0.5]}
      target: {gen: cycle, values: [0.0, 1.0, 1.0e-13]}
  ties: {why: exact ties, dtype: [float16, bfloat16], shape: [[300]], inputs: {self: 0.5, target: bernoulli 0.5, gradOutput: normal, weightOptional: {gen: cycle, values: [1.5, 1.25]}}}
  overflow: {why: float16 overflows, dtype: float16, shape: [[40]], inputs: {gradOutput: {gen: large, binades: 2}}}
  many: {why: several tiles, dtype: float32, shape: [[1500, 3], [700, 5]]}
  strided: {why: strided output, dtype: float32, shape: [[4, 6]], output: {view: transposed}}
  empty: {why: nothing to do, dtype: float32, shape: [[0, 3]]}
  refused: {why: a dtype outside the list, dtype: float64, shape: [[2, 3]], expect: ACLNN_ERR_PARAM_INVALID}
"""

NLL = """
aclnn_oracle: 1
operator: aclnnNLLLossBackward
defaults:
  main: self
  attrs: {reduction: 0, ignoreIndex: -100}
  inputs:
    gradOutput: {gen: nonzero, low: 0.5, high: 4, shape: {when: {reduction: 0}, then: leading, else: []}}
    self: normal
    target: {gen: classes, count: $-1, dtype: int64, shape: leading}
    weight: {gen: uniform, low: 0.25, high: 3, shape: last}
    totalWeight: {gen: uniform, low: 2.5, high: 7, shape: [1]}
  output: {}
families:
  plain: {why: every reduction with an ignored class, dtype: floats, shape: [[20, 5]], attrs: {reduction: [0, 1, 2], ignoreIndex: 3}}
  negative: {why: a negative ignoreIndex that occurs, dtype: float32, shape: [[20, 5]], attrs: {ignoreIndex: -2}, inputs: {target: {ignore: -2, share: 0.5}}}
  wide: {why: the low bits of ignoreIndex are a class, dtype: float32, shape: [[30, 5]], attrs: {ignoreIndex: 4294967299}}
  zero: {why: mean over nothing, dtype: float32, shape: [[9, 5]], attrs: {reduction: 1}, inputs: {totalWeight: -3.0}}
  many: {why: many cells, dtype: float32, shape: [[300, 20], [2500, 3]]}
  strided: {why: strided target and output, dtype: float32, shape: [[20, 5]], inputs: {target: {view: strided}}, output: {view: transposed}}
  empty: {why: nothing to do, dtype: float32, shape: [[0, 3]]}
  refused: {why: weight of another dtype, dtype: float32, shape: [[4, 3]], inputs: {weight: {dtype: float16}}, expect: ACLNN_ERR_PARAM_INVALID}
"""

SOFTMAX = """
aclnn_oracle: 1
operator: aclnnSoftmaxBackward
defaults:
  main: gradOutput
  attrs: {dim: -1}
  inputs: {gradOutput: normal 0 2, output: {gen: softmax_edges, dim: $dim}}
  output: {}
families:
  plain: {why: every axis, dtype: floats, shape: [[4, 3, 7]], attrs: {dim: every}, inputs: {output: uniform 0.1 1}}
  lengths: {why: rows of tiles and more, dtype: floats, shape: [[3, 16], [3, 32], [40, 130], [3, 300], [2, 20000]]}
  sums: {why: terms of one sign, dtype: [float16, bfloat16], shape: [[2, 2000]], inputs: {gradOutput: uniform 0.5 1.5, output: uniform 0.5 1.5}}
  specials: {why: NaN and infinity, dtype: float32, shape: [[4, 9]], inputs: {gradOutput: {spots: [[3, .nan], [20, .inf]]}}}
  many: {why: many elements, dtype: float32, shape: [[2000, 20]]}
  views: {why: operands that are not contiguous, dtype: float32, shape: [[6, 8]], inputs: {output: {view: transposed}, gradOutput: {view: "expanded:0"}}, output: {view: padded}}
  empty: {why: nothing to do, dtype: float32, shape: [[0, 3]]}
  empty_checked:
    why: ascend950 compares the shapes of empty operands after the last release
    dtype: float32
    shape: [[2, 0]]
    inputs: {gradOutput: 0.0, output: 0.0}
    output: {shape: [2, 3]}
    expect: {ascend950@master: ACLNN_ERR_PARAM_INVALID, default: ACLNN_SUCCESS}
  refused: {why: operands of two dtypes, dtype: float32, shape: [[4, 3]], inputs: {output: {dtype: float16}}, expect: ACLNN_ERR_PARAM_INVALID}
"""

LOG_SIGMOID = """
aclnn_oracle: 1
operator: aclnnLogSigmoidBackward
defaults:
  main: self
  inputs: {gradOutput: nonzero 0.5 4, self: normal 0 3, buffer: uniform 0.1 0.9}
  output: {}
families:
  plain: {why: the usual range, dtype: floats, shape: [[6, 11], []]}
  far: {why: far from zero on both sides, dtype: float32, shape: [[60]], inputs: {self: uniform -100 60}}
  many: {why: several tiles, dtype: float32, shape: [[1500, 3], [700, 5]]}
  strided: {why: strided output, dtype: float32, shape: [[4, 6]], output: {view: transposed}}
  empty: {why: nothing to do, dtype: float32, shape: [[0, 3]]}
  refused: {why: operands of two dtypes, dtype: float32, shape: [[4, 3]], inputs: {self: {dtype: float16}}, expect: ACLNN_ERR_PARAM_INVALID}
"""

CATALOGUES = {
    "binary_cross_entropy_backward": BCE,
    "nll_loss_backward": NLL,
    "softmax_backward": SOFTMAX,
    "log_sigmoid_backward": LOG_SIGMOID,
}


def write(folder: Path) -> list[Path]:
    paths = [folder / f"{slug}.yaml" for slug in CATALOGUES]
    for path, text in zip(paths, CATALOGUES.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths
