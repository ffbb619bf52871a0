"""Connect the process of a job to the Ray cluster that it runs on, at the first use.

Ray reads the cluster, the token and the environment of tasks, which is the job's with its working directory, from the
job's environment variables. A task adds only the interpreter and the number of threads.
"""

from __future__ import annotations

import logging
import math
import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from marin_resources.ray_tpu.ray_internals import filter_printed_lines

UNSEEN = re.compile(
    r"Raylet is terminated\."  # with the last lines of its log
    r"|GCS consider this node to be dead"  # the same raylet, of itself
    r"|^\*\*\* StackTrace Information|raylet/raylet\(\+0x|libc\.so\.6\("  # its stack, line by line
)
"""Ray prints in every job what its daemons, on all nodes, log as an error: the stack of a raylet that ends since its
node was declared dead, a bundle of a dead node that cannot be returned. The job reports itself what became of its
hosts."""

NAMESPACE = "marin"


def connect() -> Any:
    """Return the module `ray`, connected. Raises ConnectionError without a cluster."""
    import ray  # late, for its weight: a job whose shards run in its own process never needs it

    if not ray.is_initialized():
        # In a thread, so that Ray cannot replace the handler of SIGTERM: ours records a stop, Ray's does not.
        with ThreadPoolExecutor(1, thread_name_prefix="ray-connection") as thread:
            thread.submit(_connect, ray).result()
    return ray


def task_environment(cpus: float) -> dict[str, Any]:
    """Return Ray's `runtime_env` of a task, beside the job's: this interpreter, and as many threads for numerical
    libraries as Ray sets for a task with these CPUs."""
    return {"py_executable": sys.executable, "env_vars": {"OMP_NUM_THREADS": thread_count(cpus)}}


def thread_count(cpus: float) -> str:
    """Return the value of OMP_NUM_THREADS for these CPUs, as Ray sets it for a task. Without it, numerical libraries
    start a thread for each CPU of the node."""
    return str(max(math.floor(cpus), 1))


def _connect(ray: Any) -> None:
    filter_printed_lines(shown_lines)
    ray.init(
        address=os.environ.get("RAY_ADDRESS", "auto"),
        namespace=NAMESPACE,
        log_to_driver=True,
        logging_level=logging.ERROR,
    )


def shown_lines(process: str | int | None, lines: Sequence[str]) -> list[str]:
    """The lines of a process that are shown. Ray names a daemon by its program, and a worker by its number."""
    if process == "gcs_server":
        return []
    return [line for line in lines if UNSEEN.search(line) is None] if process == "raylet" else list(lines)
