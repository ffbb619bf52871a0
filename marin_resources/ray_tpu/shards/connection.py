"""The way from a job's process to the Ray that it runs on, opened when it is first needed.

Ray knows from the environment of a job which cluster it is of, with which token, and the environment its tasks get:
the job's own, with its working directory. Only the interpreter and its threads are asked for by each task.
"""

from __future__ import annotations

import logging
import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

NAMESPACE = "marin"


def connect() -> Any:
    """The module `ray`, connected. Raises ConnectionError if there is no cluster."""
    import ray

    if not ray.is_initialized():
        # In a thread, as Ray takes over SIGTERM where it can: a job that is told to stop says so, and Ray does not.
        with ThreadPoolExecutor(1, thread_name_prefix="ray-connection") as thread:
            thread.submit(_connect, ray).result()
    return ray


def task_environment(cpus: float) -> dict[str, Any]:
    """Ray's `runtime_env` of a task, beside what the job has: this interpreter, and as many threads for numerical
    libraries as Ray gives a task that asks it for its CPUs."""
    return {"py_executable": sys.executable, "env_vars": {"OMP_NUM_THREADS": str(max(math.floor(cpus), 1))}}


def _connect(ray: Any) -> None:
    ray.init(
        address=os.environ.get("RAY_ADDRESS", "auto"),
        namespace=NAMESPACE,
        log_to_driver=True,
        logging_level=logging.ERROR,
    )
