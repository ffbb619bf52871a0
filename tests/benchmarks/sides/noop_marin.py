"""Marin's side of noop_steps.py, run in marin-core's own environment.

    python noop_marin.py level|chain STEPS RUNS PREFIX

Runs its Executor over steps that do nothing, RUNS times, and prints the seconds of each as JSON on the last line.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass

from marin.execution.executor import Executor
from marin.execution.types import ExecutorStep, output_path_of, this_output_path, versioned


@dataclass(frozen=True)
class NoopConfig:
    number: int
    input_path: str | None
    output_path: str


def do_nothing(config: NoopConfig) -> None:
    """Write nothing."""


def main() -> None:
    kind, count, runs, prefix = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    steps: list[ExecutorStep] = []
    for number in range(count):
        above = output_path_of(steps[-1]) if kind == "chain" and steps else None
        config = NoopConfig(versioned(number), above, this_output_path())
        steps.append(ExecutorStep(name=f"{kind}/s{number}", fn=do_nothing, config=config))
    seconds = []
    for _ in range(runs):
        began = time.monotonic()
        Executor(prefix=prefix, executor_info_base_path=f"{prefix}/experiments").run(steps)
        seconds.append(time.monotonic() - began)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
