"""marin-core's side of `test_a_marin_bucket.py`: does what it is asked, until its input ends.

    python marin_side.py [HEARTBEAT_S]                a lease is renewed so often, and stale after three times that

in    {"id": 1, "do": "run", "prefix": …, …}       one line each; they are done side by side
out   {"id": 1, "answer": …} or {"id": 1, "error": …}
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.append(str(Path(__file__).parent))

import bucket_dag
from marin.execution import executor_step_status
from marin.execution.executor import Executor
from marin.execution.executor_step_status import StatusFile
from marin.execution.step_runner import StepRunner
from marin.execution.step_spec import StepSpec
from marin.execution.types import ExecutorStep, output_path_of, this_output_path, versioned
from rigging import distributed_lock

WORDS = SimpleNamespace(
    Step=ExecutorStep,
    fn=bucket_dag.made_by_marin,
    versioned=versioned,
    output_path_of=output_path_of,
    this_output_path=this_output_path,
)


def run(prefix: str, step: str, gates: Mapping[str, str] = {}, override: str | None = None) -> str:
    """Run a step of the DAG and all that it needs; where its output lies."""
    wanted = bucket_dag.build(WORDS, gates)[step]
    wanted = wanted.with_output_path(override) if override else wanted
    paths = Executor(prefix=prefix, executor_info_base_path=f"{prefix}/experiments").run([wanted])
    return str(paths[wanted])


def run_spec(prefix: str, name: str) -> str:
    """Run a step of Marin's newer kind, whose record has no version; where its output lies."""

    def write(output_path: str) -> None:
        bucket_dag.write(f"{output_path}/value.json", json.dumps({"value": 7, "by": "marin"}))

    spec = StepSpec(name=name, output_path_prefix=prefix, fn=write)
    StepRunner().run([spec])
    return spec.output_path


def look(path: str) -> dict[str, Any]:
    """What Marin sees of an output: its status, and whether someone holds it."""
    seen = StatusFile(path, worker_id="observer")
    return {"status": seen.status, "held": seen.has_active_lock(), "taken": seen.try_acquire_lock()}


def main() -> None:
    if len(sys.argv) > 1:
        executor_step_status.HEARTBEAT_INTERVAL = float(sys.argv[1])
        distributed_lock.HEARTBEAT_TIMEOUT = 3 * float(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Marin prints is not taken for an answer
    print(json.dumps({"id": 0, "answer": sys.executable}), file=answers, flush=True)
    for line in sys.stdin:
        threading.Thread(target=_do, args=(json.loads(line), answers), daemon=True).start()


def _do(asked: dict[str, Any], answers: Any) -> None:
    number, what = asked.pop("id"), asked.pop("do")
    try:
        told = {"id": number, "answer": {"run": run, "run_spec": run_spec, "look": look}[what](**asked)}
    except Exception:  # whatever Marin raises is the answer
        told = {"id": number, "error": traceback.format_exc()}
    print(json.dumps(told), file=answers, flush=True)


if __name__ == "__main__":
    main()
