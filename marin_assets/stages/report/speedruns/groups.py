"""Groups of entries: the seeds of one recipe at one size. Whether their mean is below a loss by more than noise.

In:  entries.   Out: groups, the front, the tracks. Read: nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from marin_assets.stages.report.speedruns.entry import Entry
from marin_assets.stages.report.speedruns.power_law import SAME

SEEDS = 3
"""Runs of which a group has at least this number for a test."""
P = 0.01
"""The p-value of what is shown is below this, as in the speedruns of modded-nanogpt (KellerJordan/modded-nanogpt)."""
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Runs of one recipe at one size."""

    label: str
    entries: tuple[Entry, ...]

    @property
    def name(self) -> str:
        return self.entries[0].name if len(self.entries) == 1 else self.label

    @property
    def values(self) -> list[float]:
        return [entry.value for entry in self.entries]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def flops(self) -> float:
        """Model FLOPs, the mean of the runs."""
        return statistics.fmean(entry.model_flops for entry in self.entries)

    @property
    def half_width(self) -> float | None:
        """Half of the 95 % interval of the mean, by Student's t; None of a single run."""
        if len(self.entries) < 2:
            return None
        from scipy.special import stdtrit  # 0.1 s to import

        error = statistics.stdev(self.values) / math.sqrt(len(self.entries))
        return float(stdtrit(len(self.entries) - 1, 0.975)) * error

    @property
    def completed(self) -> datetime:
        """The time of the last run's end."""
        return max(entry.completed or LONG_AGO for entry in self.entries)


def grouped(entries: Iterable[Entry]) -> list[Group]:
    """The groups, by label and then by FLOPs."""
    by_label: dict[str, list[Entry]] = {}
    for entry in entries:
        by_label.setdefault(entry.label, []).append(entry)
    groups = []
    for label, of in by_label.items():
        of.sort(key=lambda entry: entry.model_flops)
        parts: list[list[Entry]] = []
        for entry in of:
            if parts and _is_same_size(parts[-1][0], entry):
                parts[-1].append(entry)
            else:
                parts.append([entry])
        groups += [Group(label=label, entries=tuple(part)) for part in parts]
    return groups


def _is_same_size(first: Entry, second: Entry) -> bool:
    close = math.isclose(first.model_flops, second.model_flops, rel_tol=SAME)
    return close and first.model_size == second.model_size


def front_of(entries: Iterable[Entry], cost: str = "model_flops") -> list[Entry]:
    """The Pareto front over a cost, "model_flops" or "hardware_flops": entries that are strictly better than all
    cheaper ones, the cheapest first. Entries without that cost are left out."""
    costly = [entry for entry in entries if getattr(entry, cost)]
    front: list[Entry] = []
    for entry in sorted(costly, key=lambda entry: (getattr(entry, cost), _signed(entry.value, entry))):
        if not front or _signed(entry.value, entry) < _signed(front[-1].value, entry):
            front.append(entry)
    return front


def p_better(values: Sequence[float], than: float, goal: str = "min") -> float | None:
    """The p-value of Student's one-sided test that the mean of the runs is better than a value: how likely values as
    good are if it is not. None for fewer than two runs, and for runs that are all equal, which shows no noise."""
    if len(values) < 2 or not (deviation := statistics.stdev(values)):
        return None
    from scipy.special import stdtr

    difference = statistics.fmean(values) - than
    t = difference / (deviation / math.sqrt(len(values)))
    return float(stdtr(len(values) - 1, t if goal == "min" else -t))


def is_significant(values: Sequence[float], p: float | None) -> bool:
    return len(values) >= SEEDS and p is not None and p < P


@dataclass(frozen=True, kw_only=True)
class Finish:
    """A group that reaches the target of a track."""

    group: Group
    p: float | None
    verdict: str
    """"first" or "faster" than the best before, if the test shows it; else the reason why not."""


def track_of(groups: Iterable[Group], target: float) -> list[Finish]:
    """The groups whose mean reaches the target, the fewest model FLOPs first. Of each label they are its smallest size,
    and the smallest that a test shows.

    In the order of their times, the first that reaches it by a test (at least SEEDS runs, p < P) is "first", and each
    later one with fewer FLOPs than all of those before is "faster".
    """
    reaching = [group for group in groups if _signed(group.mean, group.entries[0]) <= _signed(target, group.entries[0])]
    finishes, best = [], math.inf
    for group in sorted(_smallest(reaching, target), key=lambda group: (group.completed, group.flops)):
        p = _p_of(group, target)
        if not is_significant(group.values, p):
            verdict = why_not(group.values, p)
        elif group.flops < best:
            verdict, best = ("first" if best == math.inf else "faster"), group.flops
        else:
            verdict = "not faster than the best"
        finishes.append(Finish(group=group, p=p, verdict=verdict))
    return sorted(finishes, key=lambda finish: finish.group.flops)


def _smallest(groups: Iterable[Group], target: float) -> Iterator[Group]:
    for smallest, *larger in by_label(groups).values():
        yield smallest
        if not is_significant(smallest.values, _p_of(smallest, target)):
            yield from [group for group in larger if is_significant(group.values, _p_of(group, target))][:1]


def _p_of(group: Group, target: float) -> float | None:
    return p_better(group.values, target, group.entries[0].goal)


def why_not(values: Sequence[float], p: float | None) -> str:
    """The reason why no test shows a group to be better."""
    if len(values) == 1:
        return "single run"
    if len(values) < SEEDS:
        return f"{len(values)} runs of {SEEDS}"
    return "equal runs" if p is None else f"p = {p:.2g}"


def _signed(value: float, entry: Entry) -> float:
    """Less is better."""
    return value if entry.goal == "min" else -value


def by_label(groups: Iterable[Group]) -> Mapping[str, list[Group]]:
    """The groups of each label, the smallest first."""
    labels: dict[str, list[Group]] = {}
    for group in groups:
        labels.setdefault(group.label, []).append(group)
    return {label: sorted(of, key=lambda group: group.flops) for label, of in labels.items()}
