"""CPU seconds of the shards that this process has sent to other processes. The process's own are in `cpu_seconds`."""

from __future__ import annotations

import threading

_turn = threading.Lock()
_sum_s = 0.0


def add_cpu_elsewhere(seconds: float) -> None:
    global _sum_s
    with _turn:
        _sum_s += seconds


def cpu_elsewhere_s() -> float:
    """Since this process began. A shard that failed, or whose worker was lost, is not in it."""
    return _sum_s
