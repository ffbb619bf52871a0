"""Goodput by the interval of checkpoints and the size of slices, over all slices of a trace.

Young's interval is sqrt(2 d M) for a checkpoint that takes d seconds and a mean time M between losses (Young, "A first
order approximation to the optimum checkpoint interval", CACM 1974). Daly's has terms of higher order ("A higher order
estimate of the optimum checkpoint interval for restart dumps", FGCS 2006, equation 37).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from marin_resources.ray_tpu.simulate.job import Work, run_on_slice
from marin_resources.ray_tpu.simulate.trace import Trace
from marin_resources.storage.output.ledger import ledger_of, sum_of

YOUNG, DALY = "young", "daly"
Policy = float | str
"""Seconds of work between two checkpoints, or the name of a formula that gives them."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One size of slices with one policy."""

    hosts: int
    """Of a slice."""
    slices: int
    mean_s: float
    """Mean time between two losses of a slice."""
    policy: Policy
    interval_s: float
    tries: int
    goodput: float
    """The ledger's: kept over all time, checkpoints among it."""
    useful: float
    """The share of all time that is work in an output, without the time of saving."""
    waited: float
    startup: float
    lost: float
    """Shares of all time."""


def study(
    trace: Trace,
    *,
    sizes: Sequence[int],
    policies: Sequence[Policy],
    work: Work,
    progress: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """The outcome of each size of slices (in hosts) with each policy. `work.interval_s` is the policies'."""
    found = []
    for hosts in sizes:
        mean_s = trace.mean_time_s(hosts)
        away = [trace.of_slice(index, hosts) for index in range(trace.hosts // hosts)]
        for policy in policies:
            interval_s = interval_of(policy, work.save_s, mean_s, trace.horizon_s)
            tried = replace(work, interval_s=interval_s)
            ledgers = [ledger_of(run_on_slice(each, hosts, trace.horizon_s, tried)) for each in away]
            found.append(_outcome(hosts, mean_s, policy, tried, sum_of(ledgers), len(away)))
            progress(found[-1])
    return found


def interval_of(policy: Policy, save_s: float, mean_s: float, horizon_s: float) -> float:
    """The seconds of work between two checkpoints. Without a loss, a formula's is the whole trace."""
    if not isinstance(policy, str):
        return policy
    if math.isinf(mean_s):
        return horizon_s
    return {YOUNG: young, DALY: daly}[policy](save_s, mean_s)


def young(save_s: float, mean_s: float) -> float:
    """Young's interval, in seconds."""
    return math.sqrt(2 * save_s * mean_s)


def daly(save_s: float, mean_s: float) -> float:
    """Daly's interval, in seconds; the mean time itself where a checkpoint takes more than twice that."""
    if save_s >= 2 * mean_s:
        return mean_s
    share = save_s / (2 * mean_s)
    return math.sqrt(2 * save_s * mean_s) * (1 + math.sqrt(share) / 3 + share / 9) - save_s


def _outcome(
    hosts: int, mean_s: float, policy: Policy, work: Work, sums: dict[str, float | int | None], slices: int
) -> Outcome:
    parts = {name: float(sums[name] or 0.0) for name in ("waited_s", "startup_s", "kept_s", "lost_s")}
    spent_s = sum(parts.values()) or 1.0
    goodput = parts["kept_s"] / spent_s
    return Outcome(
        hosts=hosts,
        slices=slices,
        mean_s=mean_s,
        policy=policy,
        interval_s=work.interval_s,
        tries=int(sums["tries"] or 0),
        goodput=goodput,
        useful=goodput * work.interval_s / (work.interval_s + work.save_s),
        waited=parts["waited_s"] / spent_s,
        startup=parts["startup_s"] / spent_s,
        lost=parts["lost_s"] / spent_s,
    )
