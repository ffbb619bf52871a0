"""Versions of a chain of 5,000 steps and of a DAG of 20,000 with one to four inputs each: seconds, and how they grow.

    python tests/benchmarks/versions.py

Times `build_graph`, which versions every step, on DAGs that are made anew for each round; medians of three. Prints
what a step of the large DAG costs against one of a DAG of 5,000 of the same kind. Exits 1 if that ratio, or the
seconds, are beyond their limits.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from marin_assets import THIS_OUTPUT_PATH, Step, output_path_of, versioned
from marin_assets.step.graph import build_graph

ROUNDS = 3
RATIO_LIMIT = 2.0
"""Linear is 1; the rest is for caches and a shared machine."""
SECONDS_LIMIT = 5.0


@dataclass(frozen=True, kw_only=True)
class NodeConfig:
    inputs: tuple[str, ...] = ()
    number: int = versioned(0)
    learning_rate: float = versioned(3e-4)
    note: str = ""
    output_path: str = THIS_OUTPUT_PATH


def do_nothing(config: NodeConfig) -> None:
    """Never run."""


def main() -> int:
    makers: dict[str, Callable[[], list[Step]]] = {
        "chain of 5,000": lambda: dag(5_000, fan_in=0),
        "DAG of 5,000, 1-4 inputs": lambda: dag(5_000, fan_in=4),
        "DAG of 20,000, 1-4 inputs": lambda: dag(20_000, fan_in=4),
    }
    times: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(ROUNDS):
        for name, make in makers.items():
            times[name].append(seconds_for(make()))
    chain, small, large = (statistics.median(taken) for taken in times.values())
    for name, taken in times.items():
        print(f"{name:28} {statistics.median(taken):6.2f} s   ({', '.join(f'{s:.2f}' for s in taken)})")
    ratio = (large / 20_000) / (small / 5_000)
    print(f"a step of 20,000 costs {ratio:.2f} times a step of 5,000 (limit {RATIO_LIMIT})")
    print(f"the slowest takes {max(chain, large):.2f} s (limit {SECONDS_LIMIT:.0f} s)")
    return 1 if ratio > RATIO_LIMIT or max(chain, large) > SECONDS_LIMIT else 0


def dag(count: int, fan_in: int) -> list[Step]:
    """Steps of which each reads one to `fan_in` among the 50 before it; 0 makes a chain."""
    dice = random.Random(count)
    steps: list[Step] = []
    for number in range(count):
        recent = steps[-50:]
        read = recent[-1:] if fan_in == 0 else dice.sample(recent, min(len(recent), dice.randint(1, fan_in)))
        inputs = tuple(output_path_of(step) for step in read)
        steps.append(
            Step(name=f"s/{number}", fn=do_nothing, config=NodeConfig(inputs=inputs, number=versioned(number)))
        )
    return steps


def seconds_for(steps: list[Step]) -> float:
    began = time.perf_counter()
    assert len(build_graph(steps)) == len(steps)
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
