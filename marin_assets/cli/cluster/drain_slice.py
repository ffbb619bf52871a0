"""Drain the hosts of a slice of any cluster, by a job on its head: what Ray, a cloud and an autoscaler do before a host
goes away.

Ray places nothing on a drained host any more. The steps that run there save and go on elsewhere; a host on which
nothing runs ends by itself. What makes no checkpoint goes on until it ends: nothing is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import time
import uuid
from typing import TYPE_CHECKING

from marin_assets.cli.cluster.connection import call_cluster, settings_from, user_at_host
from marin_assets.cli.options import OptionError
from marin_assets.cli.output import print_line, print_stderr

if TYPE_CHECKING:
    from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi

CODE = """
import json, sys, time
import ray
from ray._private.worker import global_worker
from ray.core.generated import autoscaler_pb2

name, notice_s = sys.argv[1], float(sys.argv[2])
ray.init(log_to_driver=False)
slices = {}
for node in ray.nodes():
    if node["Alive"] and "ray.io/tpu-slice-name" in node["Labels"]:
        slices.setdefault(node["Labels"]["ray.io/tpu-slice-name"], []).append(node["NodeID"])
reason = autoscaler_pb2.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
for node_id in slices.get(name, []):
    deadline_ms = int((time.time() + notice_s) * 1000)
    global_worker.gcs_client.drain_node(node_id, reason, "marin cluster preempt", deadline_ms)
print("DRAINED", json.dumps({"hosts": len(slices.get(name, [])), "slices": sorted(slices)}))
"""
"""Of the job. It needs nothing but Ray on the head."""
TIMEOUT_S, POLL_S = 120.0, 0.5


def drain(options: argparse.Namespace) -> int:
    """Drain `options.slice` of the selected cluster. Raises OptionError unless the cluster is named twice."""
    settings = settings_from(options)
    if (options.really or "").rstrip("/") != settings.address.rstrip("/"):
        raise OptionError(
            f"This takes the slice {options.slice!r} of {settings.address} away from whoever runs there. If you want "
            f"that, name the cluster a second time: --really {settings.address}"
        )

    async def submit(api: JobsApi) -> int:
        job = f"preempt-{uuid.uuid4().hex[:8]}"
        words = ["python", "-c", CODE, options.slice, str(options.notice)]
        await api.submit(
            submission_id=job,
            entrypoint=shlex.join(words),
            runtime_env={},
            metadata={"marin/user": user_at_host()},
            num_cpus=None,
            memory_bytes=None,
        )
        until_s = time.monotonic() + TIMEOUT_S
        while not (info := await api.info(job)).status.is_terminal and time.monotonic() < until_s:
            await asyncio.sleep(POLL_S)
        _, found, said = (await api.logs(job)).rpartition("DRAINED ")
        if not found:
            print_stderr(f"The job {job!r}, which drains the slice, is {info.status}: see `marin cluster logs {job}`.")
            return 1
        return _say(options.slice, json.loads(said))

    return call_cluster(settings, submit)


def _say(name: str, found: dict[str, object]) -> int:
    if not found["hosts"]:
        print_stderr(f"The cluster has no slice {name!r} that is up. It has {found['slices'] or 'none'}.")
        return 1
    print_line(
        f"The slice {name!r} is drained: Ray places nothing on its {found['hosts']} hosts any more, and each ends when "
        "nothing runs there."
    )
    return 0
