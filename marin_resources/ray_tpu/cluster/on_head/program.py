"""Run a program on the head of a cluster as a job, and return what it prints as JSON."""

from __future__ import annotations

import asyncio
import inspect
import json
import shlex
import time
import uuid
from collections.abc import Callable
from typing import Any

from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi
from marin_resources.ray_tpu.cluster.errors import ApiError

PRINTS = "MARIN"
"""The word before the JSON, on a line of its own."""
TIMEOUT_S, POLL_S = 120.0, 0.5


def with_functions(code: str, *functions: Callable[..., Any]) -> str:
    """Return the program with the text of functions of `ray_internals.py` before it."""
    return "\n".join(["from __future__ import annotations", *map(inspect.getsource, functions), code])


async def run_on_head(api: JobsApi, purpose: str, code: str, *arguments: str, user: str | None = None) -> Any:
    """Return the JSON that the program prints after the word MARIN. `purpose` begins the id of its job.

    Raises ApiError if it prints none within two minutes, and what the API raises.
    """
    job = f"{purpose}-{uuid.uuid4().hex[:8]}"
    await api.submit(
        submission_id=job,
        entrypoint=shlex.join(["python", "-c", code, *arguments]),
        runtime_env={},
        metadata={"marin/user": user} if user else {},
        num_cpus=None,
        memory_bytes=None,
    )
    until_s = time.monotonic() + TIMEOUT_S
    while not (info := await api.info(job)).status.is_terminal and time.monotonic() < until_s:
        await asyncio.sleep(POLL_S)
    _, separator, printed = (await api.logs(job)).rpartition(f"{PRINTS} ")
    if not separator:
        raise ApiError(
            f"The job {job!r} on the head of {api.address} is {info.status}, and has not printed its result. Look at "
            f"its log: marin cluster logs {job}"
        )
    return json.loads(printed.splitlines()[0])
