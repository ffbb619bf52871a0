"""Compute a task's output in the calling process, with its terminal, as under a debugger.

The function's output goes to the terminal and not to the attempt's log, and its time limits do not count: a person may
look at a frame for an hour. Lease, record and publication are those of every attempt.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from marin_resources.ray_tpu.worker.run_task import ElsewhereHooks, Placement, run
from marin_resources.storage.files import write_bytes
from marin_resources.storage.output.attempts import log_path
from marin_resources.wire.config_json import decode
from marin_resources.wire.outcome import Outcome
from marin_resources.wire.reference import load
from marin_resources.wire.task import Task


def run_in_this_process(task: Task) -> Outcome:
    """Return the outcome. An error of the function is recorded and shown."""
    task = dataclasses.replace(task, timeout_s=None, progress_timeout_s=None)
    function, config = load(task.fn), decode(task.config)

    def call(hooks: ElsewhereHooks) -> Any:
        hooks.began()
        write_bytes(log_path(task.path, task.attempt), b"Computed in a terminal, which had its output.\n")
        return function(config)

    return run(task, Placement(call=call, in_terminal=True))
