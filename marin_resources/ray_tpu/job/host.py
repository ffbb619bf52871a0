"""One host of a step: the process of a Ray task in which the step's function runs, as on all other hosts of its slice.

In:  the job's note, the place of the host among the others, and the context of the attempt, whose process is the job's.
Out: the address of this process, when it runs; then a report of how the function ended.

The process claims and publishes nothing. It has run one function, and is not used again: a process that has held a TPU
can give it back only by its end.
"""

from __future__ import annotations

import json
import os
import socket
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

from marin_resources import hosts
from marin_resources.hardware import Resources
from marin_resources.ray_tpu.cluster.settings import FAKE_VARIABLE
from marin_resources.ray_tpu.job.local_code import has_vanished
from marin_resources.ray_tpu.job.process_setup import SETUP_ERRORS, set_up_process
from marin_resources.ray_tpu.log.redact import Redactor, secrets_of
from marin_resources.ray_tpu.shards.job_allocation import JobAllocation, ShardRequirements, reserve
from marin_resources.ray_tpu.shards.worker_context import activate
from marin_resources.ray_tpu.slices.ends import report_of_error, report_of_missing_code, report_of_result
from marin_resources.ray_tpu.worker.process_tree import adopt_orphans, children, kill_descendants
from marin_resources.ray_tpu.worker.run_task import below_file, jsonable, register_mirrors
from marin_resources.storage.output.job_notes import JobNote
from marin_resources.wire.config_json import decode
from marin_resources.wire.reference import load


def host_task(note: JobNote, place: Mapping[str, str], context: Mapping[str, Any]) -> Iterator[Any]:
    """Yield "address:port" of this host, with a port that is free, then the report of the function's end.

    `place`: the variables of `marin_resources.hosts`. `context`: see `shards/worker_context.py`.
    """
    import ray  # late, for its weight

    address = f"{ray.util.get_node_ip_address()}:{_free_port()}"
    yield address
    coordinator = {hosts.COORDINATOR: address} if int(place[hosts.COUNT]) > 1 else {}
    os.environ.update({**coordinator, **place, **_accelerator(note.task.resources)})
    yield _run(note, context)


def _run(note: JobNote, context: Mapping[str, Any]) -> dict[str, Any]:
    if note.code.get("image_root"):
        os.chdir(note.code["image_root"])  # as a job's own process; Ray enters a shipped directory by itself
    adopt_orphans()
    with activate(context):
        try:
            return report_of_result(_call(note))
        except SETUP_ERRORS as error:
            return report_of_error(str(error), "")
        except BaseException as error:  # also SystemExit: the job must learn of it
            if has_vanished(note.code):
                return report_of_missing_code(f"its code is gone from its node: {error}")
            redactor = Redactor(secrets_of(note.task.env))
            text = redactor.text("".join(traceback.format_exception(type(error), error, below_file(error, __file__))))
            print(text, flush=True)
            return report_of_error(redactor.text(f"{type(error).__name__}: {error}"), text)


def _call(note: JobNote) -> Any:
    """The function's result as JSON, on host 0; nothing of it on the others."""
    task, resources = set_up_process(note), note.task.resources
    if "mirror://" in json.dumps(task.config):
        register_mirrors()
    allocation = JobAllocation(cpus=resources.cpus, memory_bytes=resources.memory_bytes, lent_while_waiting=True)
    with reserve(allocation, ShardRequirements(env=task.env, packages=task.packages)):
        function, config = load(task.fn), decode(task.config)
        before = children()
        try:
            result = function(config)
        finally:
            kill_descendants(but=before)
    return Redactor(secrets_of(task.env)).json(jsonable(result)) if hosts.host_index() == 0 else None


def _accelerator(resources: Resources) -> dict[str, str]:
    """The variable that names what jax must find here; none on a host that only pretends to have it."""
    if os.environ.get(FAKE_VARIABLE):
        return {}
    if resources.tpu:
        return {hosts.ACCELERATOR: "tpu"}
    return {hosts.ACCELERATOR: "gpu"} if resources.gpu else {}


def _free_port() -> int:
    """A port that no process of this machine uses now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]
