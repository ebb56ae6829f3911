"""The README that a folder of fixtures carries: how to read them with NumPy alone, without this package."""

from __future__ import annotations

NAME = "README.md"
READMES = {
    "npy": """\
# Fixtures of aclnn-oracle

One folder per case, one `.npy` file per tensor: `PARAMETER__DTYPE.npy` is what the operator is given,
`golden_PARAMETER__DTYPE.npy` the correctly rounded result. `manifest.json` describes every case (operator, attributes,
SoC, seed, expected status) with the sha256 of every file. No package of ours is needed to read them:

```python
import json, pathlib, numpy as np
case = json.loads(pathlib.Path("manifest.json").read_text(encoding="utf-8"))["cases"][0]
tensors = {name: np.load(pathlib.Path(case["folder"], name)) for name in case["files"]}
for name, array in tensors.items():  # bfloat16 is stored as its bits: uint16, the upper half of a float32
    print(name, (array.astype(np.uint32) << 16).view(np.float32) if "__bfloat16" in name else array)
```

`aclnn-oracle golden DIR --verify` recomputes every file and compares bit for bit.
""",
    "ttk": """\
# Fixtures of aclnn-oracle in ops-test-kit's two-stage layout

One folder per case with raw little-endian files: `input_0_bfloat16.bin` by position (`_none` for an absent optional),
`golden_0_bfloat16__shape_2x8x128.bin` (rank 0: `scalar`) the correctly rounded result. `manifest.json` describes every
case with the sha256 of every file. No package of ours is needed to read them:

```python
import json, pathlib, numpy as np
case = json.loads(pathlib.Path("manifest.json").read_text(encoding="utf-8"))["cases"][0]
for name in case["files"]:  # the dtype is the third word; bfloat16 is its bits: uint16, the upper half of a float32
    dtype = name.split("__")[0].removesuffix(".bin").split("_", 2)[2]
    print(name, np.fromfile(pathlib.Path(case["folder"], name), "<u2" if dtype == "bfloat16" else dtype))
```

`aclnn-oracle golden DIR --verify` recomputes every file and compares bit for bit.
""",
}  # what a reader of the files needs to know, by layout


def readme(layout: str) -> bytes:
    """Return the README of a layout."""
    return READMES[layout].encode()
