"""Two calls in flight, and the earlier one repeated: kernels that keep a state show only then."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.backends import load
from oracle.emulator import add_custom, build_custom
from oracle.model.call import Call
from oracle.model.errors import DeviceFault
from oracle.numerics.golden.elementwise import Formula
from oracle.operators import OPERATORS, Operator
from oracle.operators.definition.parameters import Parameter
from oracle.operators.definition.roles import MAIN

NAME = "aclnnMyDouble"
SOURCE = """
// out = 2 self. kind: how many elements the last plan had is kept in a static variable (1); the executor counts its
// runs (2); what is doubled goes through a scratch buffer that all streams share, and two calls that run at the same
// time wait for one another, so that the test does not depend on the machine's load (3), or nobody waits (4).
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "ops/checks.h"

using namespace emu;

namespace {

size_t planned;
std::vector<float> scratch;
int arrived;
std::mutex mutex;
std::condition_variable comes;

void through_scratch(std::vector<float>& xs, bool waits) {
  std::unique_lock<std::mutex> lock(mutex);
  scratch = xs;
  arrived++;
  comes.notify_all();
  if (waits && arrived > 1) comes.wait_for(lock, std::chrono::seconds(60), [] { return arrived > 2; });
  for (size_t i = 0; i < xs.size(); i++) xs[i] = i < scratch.size() ? scratch[i] : 0;
}

}  // namespace

EMU_C aclnnStatus aclnnMyDoubleGetWorkspaceSize(const aclTensor* self, int64_t kind, aclTensor* out_,
                                                uint64_t* workspaceSize, aclOpExecutor** executor) {
  static FirstPhase phase("aclnnMyDouble");
  return phase(workspaceSize, executor, [&](Op& op) {
    Tensor x = op.input("self", self), out = op.output("out", out_);
    op.attribute("kind", kind);
    if (kind < 0) throw Error{ACLNN_ERR_PARAM_INVALID, "kind is negative"};
    op.workspace({x, out});
    if (kind == 0) arrived = 0;
    planned = static_cast<size_t>(x.shape[0]);
    auto runs = std::make_shared<int>(0);
    op.kernel([=](Run& run) {
      std::vector<float> xs = read_floats(run.open(x));
      bool again = (*runs)++ > 0;
      if (kind >= 3) through_scratch(xs, kind == 3);
      for (size_t i = 0; i < xs.size(); i++) xs[i] = kind == 1 && i >= planned ? 7 : 2 * xs[i] + (kind == 2 && again);
      write(run.open(out), xs);
    });
  });
}
EMU_SECOND_PHASE(aclnnMyDouble)
"""
PARAMETERS = (Parameter("self", "input", MAIN), Parameter("kind", "attr"), Parameter("out", "output"))
DOUBLE = Operator(NAME, PARAMETERS, (), lambda a, platform: iter(()), ("self",), Formula(lambda x: x))
NONE, PLAN, COUNT, SCRATCH, NO_WAIT = range(5)


@pytest.fixture
def device(emulator, tree, monkeypatch):
    """Return a function that loads the backend on the package, with or without two calls at a time."""
    monkeypatch.setitem(OPERATORS._all(), NAME, DOUBLE)
    add_custom(build_custom("my_double", {"my_double.cpp": SOURCE}, toolkit=tree))
    made = []

    def opened(together):
        made.append(load("aclnn", {"timeout": "60", "together": together}))
        return made[-1]

    yield opened
    emulator.clear()
    for backend in made:
        backend.close()
    for name in (NAME, f"{NAME}GetWorkspaceSize"):
        made[0].cann._declared.pop(name, None)
    assert emulator.alive() == dict.fromkeys(emulator.alive(), 0)


def double(size, kind, name=""):
    x = np.arange(1, size + 1, dtype=np.float32) + size
    return Call(NAME, "ascend910b", {"self": x}, {"kind": kind}, {"out": np.full(size, 9, np.float32)}, case_id=name)


def run_right(backend, call):
    assert backend.run(call).ok
    np.testing.assert_array_equal(call.outputs["out"], 2 * call.inputs["self"])


def test_one_call_at_a_time_never_shows_a_state(device):
    backend = device("0")
    for kind in (NONE, PLAN, COUNT, NO_WAIT):
        for size in (600, 40, 600):
            run_right(backend, double(size, kind))


@pytest.mark.parametrize("kind", [PLAN, COUNT])
def test_a_state_shows_in_the_earlier_call_s_second_run(device, kind):
    backend = device("1")
    run_right(backend, double(600, kind, "the first"))
    with pytest.raises(DeviceFault, match=r"the first did something else when .* with the second .*keeps a state"):
        backend.run(double(40, kind, "the second"))
    run_right(backend, double(600, NONE))  # the state is gone


def test_memory_that_two_streams_share_shows_in_one_of_the_two_calls(device):
    backend = device("1")
    run_right(backend, double(8, NONE))
    run_right(backend, double(600, SCRATCH))
    call = double(40, SCRATCH)
    try:
        wrong = backend.run(call).ok and (call.outputs["out"] != 2 * call.inputs["self"]).any()
    except DeviceFault as error:
        wrong = "keeps a state" in str(error)
    assert wrong


def test_kernels_without_a_state_run_two_at_a_time(device, emulator):
    backend = device("1")
    before = emulator.calls(NAME)
    for size in (600, 40, 1, 600):
        run_right(backend, double(size, NONE))
        assert backend.run(double(8, -1)).code == 161002  # a refused call is not paired with another one
    assert emulator.calls(NAME) - before == 4 + 3
    assert emulator.misuses() == 0


def test_a_fault_of_the_device_takes_the_kept_call_with_it(device, emulator):
    backend = device("1")
    run_right(backend, double(600, NONE))
    emulator.inject(f"{NAME}=fault:507015")
    with pytest.raises(DeviceFault):
        backend.run(double(40, NONE))
    emulator.clear()
    for size in (40, 600):
        run_right(backend, double(size, NONE))
