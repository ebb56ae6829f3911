"""The first calls of a process may come from several threads: each gets the same answer as alone."""

from __future__ import annotations

import os
import subprocess
import sys

# Fresh processes, eight threads each; `.ci/full` asks for 1,000.
PROCESSES = int(os.environ.get("ACLNN_TEST_FIRST_CALLS", "4"))
PROGRAM = """
import sys, threading
import numpy as np
import oracle

x = np.linspace(-5, 5, 4096, dtype=np.float32).reshape(64, 64)
calls = [
    ("aclnnSiluBackward", dict(self=x)), ("aclnnLogSigmoidBackward", dict(self=x, buffer=x)),
    ("aclnnGeluBackward", dict(self=x)), ("aclnnSoftmaxBackward", dict(output=x, dim=-1)),
    ("aclnnSigmoidBackward", dict(output=x)), ("aclnnMishBackward", dict(self=x)),
    ("aclnnTanhBackward", dict(output=x)), ("aclnnGeluBackwardV2", dict(self=x, approximate="none")),
]
found, start = {}, threading.Barrier(len(calls))

def first(name, given):
    start.wait()
    try:
        found[name] = next(iter(oracle.golden(name, gradOutput=x, **given).values())).tobytes()
    except Exception as error:
        found[name] = repr(error)

threads = [threading.Thread(target=first, args=call) for call in calls]
for thread in threads: thread.start()
for thread in threads: thread.join()
for name, given in calls:
    alone = next(iter(oracle.golden(name, gradOutput=x, **given).values())).tobytes()
    if found[name] != alone:
        sys.exit(f"{name}: {found[name][:200]}")
"""


def test_eight_threads_get_the_answers_of_one() -> None:
    for _ in range(PROCESSES):
        subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=100)
