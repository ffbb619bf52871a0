"""What could be collected: the complete outputs that no root needs, those first that are cheapest to make again.

In:  what is stored, the roots, patterns.   Out: proposals, and of what was kept the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from marin_assets.inspection.gc.cost import MakingCost, making_cost
from marin_assets.inspection.gc.retention import Reason
from marin_assets.inspection.gc.roots import Roots
from marin_assets.inspection.gc.stored_outputs import Stored, StoredOutputs
from marin_assets.step.values import ConfigError
from marin_resources.storage.index.look import existing
from marin_resources.storage.output.status import read_status
from marin_resources.storage.paths import join, name_below
from marin_resources.storage.usage.cost_estimate import PriceList
from marin_resources.types.output import Status
from marin_resources.types.record import Record

HASHED = re.compile(r"(?P<name>.+)-(?P<version>[0-9a-f]{6})")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which outputs are looked at."""

    patterns: tuple[str, ...] = ()
    """Parts of a path below the prefix; none: all."""
    keep_days: float = 90.0
    """What was made or named by an experiment within so many days is kept."""
    older_than_days: float = 0.0
    """Only what was used last before so many days."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """An output that nothing needs."""

    stored: Stored
    record: Record
    cost: MakingCost
    last_use: datetime | None
    """The last run of an experiment that names it, else when it was complete; None if neither is known."""

    @property
    def finished(self) -> datetime | None:
        return _time(self.stored.finished_s)


@dataclass(frozen=True, kw_only=True)
class Proposals:
    proposed: tuple[Proposal, ...]
    """The cheapest to make again first, for each byte."""
    kept: Mapping[str, Reason]
    """Path below the prefix -> why it is kept, of the others that were looked at."""


def propose(stored: StoredOutputs, roots: Roots, choice: Choice, prices: PriceList, now: datetime) -> Proposals:
    """Raises ConfigError for a pattern that finds nothing, and UnavailableError."""
    patterns = [name_below(given, stored.prefix) for given in choice.patterns]
    looked = _chosen(stored, choice.patterns)
    kept = {each.relative: reason for each in looked if (reason := roots.kept.why(each.relative)) is not None}
    last_uses = {each.relative: _last_use(each, roots) for each in looked if each.relative not in kept}
    for path, last_use in last_uses.items():
        if (reason := _too_recent(last_use, choice, now)) is not None:
            kept[path] = reason
    free = _there(stored.prefix, [each for each in looked if each.relative not in kept])
    records = stored.records(each.relative for each in free)
    for each in free:
        if each.relative in stored.unknown:
            kept[each.relative] = Reason(kind="damaged", sentence=stored.damaged[each.relative])
        if each.relative in records and not is_ours(records[each.relative]) and not _is_named(each, patterns):
            kept[each.relative] = Reason(
                kind="Marin's", sentence="made by Marin itself: it is collected if it is named"
            )
    left = [each for each in free if each.relative in records and each.relative not in kept]
    found = [
        Proposal(
            stored=each,
            record=records[each.relative],
            cost=making_cost(records[each.relative], prices),
            last_use=last_uses[each.relative],
        )
        for each in left
    ]
    in_dollars = all(each.cost.dollars is not None for each in found if each.cost.device_hours)
    return Proposals(proposed=tuple(sorted(found, key=lambda each: _per_byte(each, in_dollars))), kept=kept)


def is_ours(record: Record) -> bool:
    """Whether this software has made the output, and not Marin."""
    return record.format_version is not None or record.identity is not None


def require_pattern(pattern: str) -> None:
    """Raise ConfigError for a text that is no pattern."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{pattern!r} is not a pattern ({error}). Give part of an output's path.") from None


def matches(relative: str, label: str, pattern: str) -> bool:
    """Whether a pattern selects the output: its path, its label, or a part of its path."""
    return pattern in (relative, label) or re.search(pattern, relative) is not None


def _chosen(stored: StoredOutputs, patterns: Sequence[str]) -> list[Stored]:
    if not patterns:
        return list(stored.all)
    chosen: dict[str, Stored] = {}
    for given in patterns:
        pattern = name_below(given, stored.prefix)
        require_pattern(pattern)
        found = [each for each in stored.all if matches(each.relative, each.label, pattern)]
        found = found or _without_marker(stored.prefix, pattern)
        if not found:
            raise ConfigError(
                f"{given!r} finds no complete output below {stored.prefix!r}. Give part of a path below it, such as "
                "'tokenized/web-3f2a1c'; outputs at a path of their own (override_output_path) are not collected."
            )
        chosen |= {each.relative: each for each in found}
    return list(chosen.values())


def _without_marker(prefix: str, relative: str) -> list[Stored]:
    """A complete output at this very path, such as one of Marin's."""
    found = HASHED.fullmatch(relative)
    if found is None or read_status(join(prefix, relative)) is not Status.SUCCESS:
        return []
    return [Stored(name=found["name"], version=found["version"], bytes=0, finished_s=0)]


def _is_named(stored: Stored, patterns: Sequence[str]) -> bool:
    return any(p.endswith((stored.relative, stored.label)) for p in patterns)


def _there(prefix: str, some: list[Stored]) -> list[Stored]:
    """Those whose folder exists: what was removed by hand has a marker still."""
    found = existing([join(prefix, each.relative) for each in some])
    return [each for each in some if join(prefix, each.relative) in found]


def _last_use(stored: Stored, roots: Roots) -> datetime | None:
    times = (roots.last_run(stored), _time(stored.finished_s))
    return max((time for time in times if time is not None), default=None)


def _too_recent(last_use: datetime | None, choice: Choice, now: datetime) -> Reason | None:
    if last_use is None:
        return None
    days = (now - last_use) / timedelta(days=1)
    if days < choice.keep_days:
        return Reason(kind="recent", sentence=f"used last {days:.1f} days ago, and {choice.keep_days:g} days are kept")
    if days < choice.older_than_days:
        return Reason(kind="not older", sentence=f"used last {days:.1f} days ago, and older ones were asked for")
    return None


def _per_byte(proposal: Proposal, in_dollars: bool) -> tuple[float, float, str]:
    """First what its devices cost for each byte, then seconds; what is not known comes last."""
    cost, size = proposal.cost, max(1, proposal.stored.bytes)
    devices = cost.dollars if in_dollars and cost.dollars is not None else cost.device_hours
    if cost.seconds is None:
        return float("inf"), 0.0, proposal.stored.relative
    return devices / size, cost.seconds / size, proposal.stored.relative


def _time(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def total_bytes(some: Iterable[Proposal]) -> int:
    return sum(each.stored.bytes for each in some)
