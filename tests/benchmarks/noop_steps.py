"""What a step costs that does nothing: 100 steps through Dagster and Ray here, and through marin-core's Executor.

    python tests/benchmarks/noop_steps.py [ROUNDS]

    done before   100 steps side by side, all complete: the second run of `dagster asset materialize --select '*'`
    in a chain    100 steps, each reading the one before: the first run

A step's cost is a slope: the time for 100 steps less the time for one, over 99, so that the start of a process (and
here, of Ray) is in neither. Here that is the wall time of whole commands; marin-core's is that of `Executor.run` alone,
in its own environment. Rounds alternate between the two; medians count. Exits 1 beyond a limit. Takes ten minutes.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "sides"))

from marin_core import SIDES, run_marin
from noop_ours import STEPS

from marin_resources.configuration.settings import project_root

LIMITS = {"done before": 0.4, "in a chain": 0.2}
"""Our seconds a step over marin-core's."""


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    ours: dict[str, list[float]] = {case: [] for case in LIMITS}
    theirs: dict[str, list[float]] = {case: [] for case in LIMITS}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            ours["done before"].append(our_second_run(folder))
            ours["in a chain"].append(our_chain(folder))
            theirs["done before"].append(their_slope("level", folder, run=1))
            theirs["in a chain"].append(their_slope("chain", folder, run=0))
    print(f"{'ms a step':12} {'here':>7} {'marin-core':>11} {'ratio':>7} {'limit':>6}")
    ratios = {case: statistics.median(ours[case]) / statistics.median(theirs[case]) for case in LIMITS}
    for case, ratio in ratios.items():
        here, there = (1000 * statistics.median(side[case]) for side in (ours, theirs))
        every = ", ".join(f"{1000 * a:.0f}/{1000 * b:.0f}" for a, b in zip(ours[case], theirs[case], strict=True))
        print(f"{case:12} {here:7.1f} {there:11.1f} {ratio:7.3f} {LIMITS[case]:6}   ({every})")
    return 1 if any(ratio > LIMITS[case] for case, ratio in ratios.items()) else 0


def our_second_run(folder: str) -> float:
    """Seconds a step, of steps that are complete."""
    materialize("level", "*", f"{folder}/level", folder)
    every = materialize("level", "*", f"{folder}/level", folder)
    one = materialize("level", 'key:"level/s0"', f"{folder}/level", folder)
    return (every - one) / (STEPS - 1)


def our_chain(folder: str) -> float:
    """Seconds a step, of steps that follow each other."""
    every = materialize("chain", "*", f"{folder}/chain", folder)
    one = materialize("chain", 'key:"chain/s0"', f"{folder}/first_of_chain", folder)
    return (every - one) / (STEPS - 1)


def materialize(kind: str, select: str, prefix: str, folder: str) -> float:
    """Wall seconds of one command. Dagster is set up as the checkout sets it up, in a home of its own."""
    home = Path(folder, "dagster")
    home.mkdir(exist_ok=True)
    shutil.copy(project_root() / ".dagster/dagster.yaml", home)
    path = os.pathsep.join([str(SIDES), str(project_root())])
    environment = {**os.environ, "MARIN_PREFIX": prefix, "DAGSTER_HOME": str(home), "PYTHONPATH": path}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "dagster", "asset", "materialize", "-m", "noop_ours", "-a", kind]
    began = time.monotonic()
    done = subprocess.run([*command, "--select", select], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return time.monotonic() - began


def their_slope(kind: str, folder: str, run: int) -> float:
    """Seconds a step of marin-core's run number `run`, counted from 0."""
    one = run_marin("noop_marin.py", kind, "1", str(run + 1), f"{folder}/marin_one_{kind}")
    every = run_marin("noop_marin.py", kind, str(STEPS), str(run + 1), f"{folder}/marin_{kind}")
    return (every[run] - one[run]) / (STEPS - 1)


if __name__ == "__main__":
    sys.exit(main())
