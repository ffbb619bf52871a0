"""Marin's side of marin_compat.py, run by marin-core's own interpreter: `python paths_marin.py TABLE`.

Prints id -> relative output path, as marin-core's Executor computes them, as JSON on the last line.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import step_table
from marin.execution.executor import Executor, mirrored
from marin.execution.types import ExecutorStep, InputName, output_path_of, this_output_path, versioned

WORDS = SimpleNamespace(
    Step=ExecutorStep,
    versioned=versioned,
    output_path_of=output_path_of,
    this_output_path=this_output_path,
    hardcoded=InputName.hardcoded,
    mirrored=mirrored,
)


def main() -> None:
    with open(sys.argv[1]) as file:
        steps = step_table.build(json.load(file), WORDS)
    executor = Executor(prefix="/prefix", executor_info_base_path="/prefix/experiments")
    for step in steps.values():
        executor.compute_version(step, is_pseudo_dep=False)
    print(json.dumps({id_: executor.output_paths[step].removeprefix("/prefix/") for id_, step in steps.items()}))


if __name__ == "__main__":
    main()
