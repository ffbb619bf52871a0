"""The wait of a step for hosts with its devices: what it logs, and when it fails.

A step that has had its hosts before waits without limit: the cluster has such hosts, and they were taken away. Another
one fails if no node has had what it requests for `start_timeout_s`: its request may be a mistake.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from marin_resources.ray_tpu.cluster.settings import (
    DEFAULT_START_TIMEOUT_S,
    NODE_TYPES_VARIABLE,
    START_TIMEOUT_VARIABLE,
)
from marin_resources.ray_tpu.cluster.settings_from_env import parse_node_types
from marin_resources.ray_tpu.ray_options import UnmeetableError, alive_nodes, refuse_unmeetable
from marin_resources.ray_tpu.slices.bundles import group_of
from marin_resources.wire.task import Task

FIRST_LOG_S, LOG_EVERY_S = 5.0, 60.0
NAMED_HOSTS = 3


class HostWait:
    """One wait. `has_run`: whether the step has had such hosts before."""

    def __init__(self, task: Task, ray: Any, *, has_run: bool) -> None:
        self._task, self._ray, self._has_run = task, ray, has_run
        self._node_types = parse_node_types(os.environ.get(NODE_TYPES_VARIABLE) or "[]", NODE_TYPES_VARIABLE)
        self._timeout_s = float(os.environ.get(START_TIMEOUT_VARIABLE) or DEFAULT_START_TIMEOUT_S)
        self._since = datetime.now(UTC)
        self._began_s = self._fit_s = time.monotonic()
        self._next_log_s = self._began_s + FIRST_LOG_S
        self.avoided: Mapping[str, str] = {}
        """The bad hosts that the step does without -> why."""

    def check(self) -> None:
        """Log what the step waits for. Raise UnmeetableError if its time limit for a node is over."""
        now_s, missing = time.monotonic(), False
        try:
            nodes = [*alive_nodes(self._ray), *self._node_types]
            refuse_unmeetable(f"Step {self._task.output.label!r}", self._task.resources, nodes)
            self._fit_s = now_s
        except UnmeetableError:
            missing = True
            if not self._has_run and now_s - self._fit_s >= self._timeout_s:
                raise
        if now_s >= self._next_log_s:
            print(self._waiting(now_s, missing=missing), flush=True)
            self._next_log_s = now_s + LOG_EVERY_S

    def _waiting(self, now_s: float, *, missing: bool) -> str:
        """Return one line: what the step waits for, since when, how much of it the cluster has, and for how long."""
        total, free = self._ray.cluster_resources(), self._ray.available_resources()
        names = list(group_of(self._task.resources).bundles[0])
        has = ", ".join(f"{free.get(name, 0):g} of {total.get(name, 0):g} {name}" for name in names)
        waited = f"{now_s - self._began_s:.0f} s, since {self._since:%Y-%m-%d %H:%M:%S} UTC"
        line = f"waiting for {self._task.resources.describe()} for {waited}; free in the cluster: {has}{self._bad()}"
        if not missing:
            return line
        left_s = self._timeout_s - (now_s - self._fit_s)
        limit = "it has run before, and waits without limit" if self._has_run else f"it fails in {left_s:.0f} s"
        return f"{line}; no node has all of it now: {limit}"

    def _bad(self) -> str:
        """A phrase that names the hosts that are avoided."""
        if not self.avoided:
            return ""
        named = [f"{host} ({why})" for host, why in list(self.avoided.items())[:NAMED_HOSTS]]
        more = f" and {len(self.avoided) - NAMED_HOSTS} more" if len(self.avoided) > NAMED_HOSTS else ""
        return f"; avoided as bad: {', '.join(named)}{more}, see marin cluster bad-hosts"
