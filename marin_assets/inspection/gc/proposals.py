"""Outputs that could be collected: the complete ones that no root needs, those first that are cheapest to make again.

In:  what is stored, the roots, patterns.   Out: proposals, and the reasons of the kept outputs.
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
    """The outputs that are examined."""

    patterns: tuple[str, ...] = ()
    """Parts of a path below the prefix; none: all."""
    keep_days: float = 90.0
    """Outputs that were made, or named by an experiment, within the last so many days are kept."""
    older_than_days: float = 0.0
    """Only outputs that were last used more than so many days ago."""


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
    """Path below the prefix -> why it is kept, of the others that were examined."""


def propose(stored: StoredOutputs, roots: Roots, choice: Choice, prices: PriceList, now: datetime) -> Proposals:
    """Raises ConfigError for a pattern that finds nothing, and UnavailableError."""
    patterns = [name_below(given, stored.prefix) for given in choice.patterns]
    looked = _chosen(stored, choice.patterns)
    retained = {output.relative: reason for output in looked if (reason := roots.kept.why(output.relative)) is not None}
    last_uses = {output.relative: _last_use(output, roots) for output in looked if output.relative not in retained}
    for path, last_use in last_uses.items():
        if (reason := _too_recent(last_use, choice, now)) is not None:
            retained[path] = reason
    free = _there(stored.prefix, [output for output in looked if output.relative not in retained])
    records = stored.records(output.relative for output in free)
    for output in free:
        if output.relative in stored.unknown:
            retained[output.relative] = Reason(kind="damaged", sentence=stored.damaged[output.relative])
        if output.relative in records and not is_ours(records[output.relative]) and not _is_named(output, patterns):
            retained[output.relative] = Reason(
                kind="Marin's", sentence="made by Marin itself: it is collected if it is named"
            )
    remaining = [output for output in free if output.relative in records and output.relative not in retained]
    proposals = [
        Proposal(
            stored=output,
            record=records[output.relative],
            cost=making_cost(records[output.relative], prices),
            last_use=last_uses[output.relative],
        )
        for output in remaining
    ]
    in_dollars = all(proposal.cost.dollars is not None for proposal in proposals if proposal.cost.device_hours)
    return Proposals(
        proposed=tuple(sorted(proposals, key=lambda proposal: _per_byte(proposal, in_dollars))), kept=retained
    )


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
        matching = [output for output in stored.all if matches(output.relative, output.label, pattern)]
        matching = matching or _without_marker(stored.prefix, pattern)
        if not matching:
            raise ConfigError(
                f"{given!r} finds no complete output below {stored.prefix!r}. Give part of a path below it, such as "
                "'tokenized/web-3f2a1c'; outputs at a path of their own (override_output_path) are not collected."
            )
        chosen |= {output.relative: output for output in matching}
    return list(chosen.values())


def _without_marker(prefix: str, relative: str) -> list[Stored]:
    """A complete output at this very path, such as one of Marin's."""
    match = HASHED.fullmatch(relative)
    if match is None or read_status(join(prefix, relative)) is not Status.SUCCESS:
        return []
    return [Stored(name=match["name"], version=match["version"], bytes=0, finished_s=0)]


def _is_named(stored: Stored, patterns: Sequence[str]) -> bool:
    return any(p.endswith((stored.relative, stored.label)) for p in patterns)


def _there(prefix: str, outputs: list[Stored]) -> list[Stored]:
    """The outputs whose folder exists: one that was removed by hand still has a marker."""
    folders = existing([join(prefix, output.relative) for output in outputs])
    return [output for output in outputs if join(prefix, output.relative) in folders]


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
    """Sort key: the cost of its devices for each byte, then seconds; an unknown cost comes last."""
    cost, size = proposal.cost, max(1, proposal.stored.bytes)
    devices = cost.dollars if in_dollars and cost.dollars is not None else cost.device_hours
    if cost.seconds is None:
        return float("inf"), 0.0, proposal.stored.relative
    return devices / size, cost.seconds / size, proposal.stored.relative


def _time(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def total_bytes(proposals: Iterable[Proposal]) -> int:
    return sum(proposal.stored.bytes for proposal in proposals)
