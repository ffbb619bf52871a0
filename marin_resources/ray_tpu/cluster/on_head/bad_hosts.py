"""The hosts that steps avoid, as the head of a cluster has them (`slices/bad_hosts.py`); and to avoid one no longer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from marin_resources.ray_tpu.cluster.api.jobs_api import JobsApi
from marin_resources.ray_tpu.cluster.on_head.program import run_on_head, with_functions
from marin_resources.ray_tpu.ray_internals import kv_delete, kv_get, kv_keys
from marin_resources.ray_tpu.slices.bad_hosts import AVOIDED_S, NAMESPACE, PREFIX

CODE = with_functions(
    """
import json, sys, time
import ray

namespace, prefix, lift = sys.argv[1].encode(), sys.argv[2].encode(), json.loads(sys.argv[3])
ray.init(log_to_driver=False)
found = {}
for key in kv_keys(prefix, namespace):
    data, host = kv_get(key, namespace), key[len(prefix):].decode()
    if data and host not in lift:
        found[host] = {**json.loads(data), "age_s": time.time() - json.loads(data)["at_s"]}
    elif data:
        kv_delete(key, namespace)
print("MARIN", json.dumps(found))
""",
    kv_keys,
    kv_get,
    kv_delete,
)


@dataclass(frozen=True, kw_only=True)
class BadHost:
    """A host that no step is placed on now, if another one is up."""

    host: str
    """The slice and the worker, "us-central2-v4-16-0-1/1"; of a host that is no TPU's, the id of its node."""
    why: str
    step: str
    """The name of the step that has reported it."""
    since_s: float
    """Seconds since the report."""

    @property
    def left_s(self) -> float:
        return AVOIDED_S - self.since_s


async def bad_hosts_of(api: JobsApi, *, lift: Sequence[str] = (), user: str | None = None) -> list[BadHost]:
    """The hosts that are avoided now, the latest report first. Those in `lift` are avoided no longer. Raises as the
    API."""
    arguments = (NAMESPACE.decode(), PREFIX.decode(), json.dumps(list(lift)))
    entries = await run_on_head(api, "bad-hosts", CODE, *arguments, user=user)
    hosts = [
        BadHost(host=host, why=entry["why"], step=entry.get("step", ""), since_s=max(entry["age_s"], 0.0))
        for host, entry in entries.items()
    ]
    return sorted((host for host in hosts if host.left_s > 0), key=lambda host: host.since_s)
