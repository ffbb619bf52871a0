"""Workers that start in milliseconds: a process that has loaded everything forks one for each task.

`python worker_nursery.py` reads lines of JSON, {"task": text, "env": {name: value}}, and answers each with a line,
{"status": what `waitpid` says as an exit code, "outcome": JSON or ""}.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

LOADED_BEFORE = (
    "marin_assets.stages.transform.ingest",
    "marin_resources.ray_tpu.worker.run_task",
    "gcsfs",
    "s3fs",
    "google_crc32c",
)


class Nursery:
    """The side of the test."""

    def __init__(self) -> None:
        tests = Path(__file__).parent
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), str(tests.parents[1])])},
        )

    def run(self, task: str, **env: str) -> tuple[int, dict[str, Any] | None]:
        """Exit code (negative: the signal that ended it) and outcome of a worker that ran the task."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"task": task, "env": env}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer["status"], json.loads(answer["outcome"]) if answer["outcome"] else None

    def end(self) -> None:
        self._process.communicate()


def serve() -> None:
    for module in LOADED_BEFORE:
        importlib.import_module(module)
    for line in sys.stdin:
        asked = json.loads(line)
        receiver, sender = os.pipe()
        pid = os.fork()
        if pid == 0:
            work(asked["task"], asked["env"], sender)
        os.close(sender)
        with os.fdopen(receiver) as told:
            outcome = told.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps({"status": status, "outcome": outcome}), flush=True)


def work(task: str, env: dict[str, str], sender: int) -> None:
    """Run a worker in this process. Does not return."""
    from marin_resources.ray_tpu.worker.run_task import run_task

    os.environ.update(env)
    os.dup2(2, 1)  # standard output is the nursery's own
    try:
        with os.fdopen(sender, "w") as told:
            told.write(json.dumps(run_task(json.loads(task))))
    finally:
        os._exit(0)


if __name__ == "__main__":
    serve()
