"""Drift: changes since an output was computed that its version does not cover. Pure: records are compared.

    find_drift     the changes, from the record of an output and the same facts as they are now
    not_recorded   the kinds of drift that the record holds too little for
    describe       all changes in one phrase, for a log line

Drift decides nothing: a complete output is reused, and the reader decides.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marin_resources.drift.config import differing_fields
from marin_resources.drift.source_modules import is_plumbing
from marin_resources.types.record import Record

MAX_NAMED = 4


class Kind(enum.StrEnum):
    CONFIG = "config"
    FUNCTION = "function"
    SOURCE = "source"
    INPUT = "inputs"
    ENVIRONMENT = "environment"
    PLUMBING = "plumbing"


@dataclass(frozen=True, kw_only=True)
class Drift:
    kind: Kind
    what: str
    """Name of the field, function, module, step, or part of the environment."""
    was: Any
    now: Any

    def sentence(self) -> str:
        """One sentence, for a list of changes."""
        if self.kind in (Kind.CONFIG, Kind.FUNCTION) or self.what == PYTHON:
            return f"{_NOUNS[self.kind]} {self.what!r} was {_short(self.was)} and is {_short(self.now)} now."
        if self.kind is Kind.SOURCE and (self.was is None or self.now is None):
            return f"The module {self.what!r} is {'new' if self.was is None else 'gone'} in what its function imports."
        if self.kind is Kind.INPUT:
            return f"The input {self.what!r} was computed again, and its content differs from the one read."
        if self.kind is Kind.PLUMBING:
            return f"The plumbing changed: {self.what}."
        return f"{_NOUNS[self.kind]} {self.what!r} changed."


def find_drift(record: Record, now: Record, inputs: Mapping[str, str | None]) -> tuple[Drift, ...]:
    """The differences between a record and now, in the order of Kind, then by name.

    `now` has the facts that a record written now would hold; `inputs` maps the name of each input's step to the
    current digest of its manifest. A fact that one side lacks is not drift.
    """
    groups = (_config(record, now), _code(record, now), _inputs(record, inputs), _environment(record, now))
    return tuple(sorted((drift for group in groups for drift in group), key=lambda d: (_ORDER[d.kind], d.what)))


def not_recorded(record: Record, now: Record) -> tuple[Kind, ...]:
    """The kinds of drift that cannot be compared: Marin's records and older ones hold less."""
    unknown = {
        Kind.CONFIG: not _is_ours(record) or now.config is None,
        Kind.SOURCE: not (record.source_digest and now.source_digest),
        Kind.INPUT: bool(now.dependencies) and record.inputs is None,
        Kind.ENVIRONMENT: not record.environment.lock_digest,
    }
    return tuple(kind for kind, holds in unknown.items() if holds)


def without_plumbing(drift: Iterable[Drift]) -> tuple[Drift, ...]:
    """Drift without the kind "plumbing", which every update of this software changes."""
    return tuple(item for item in drift if item.kind is not Kind.PLUMBING)


def describe(drift: Sequence[Drift]) -> str:
    """The changes as a phrase: "since it was computed, … and … changed"; "" for none, or plumbing alone."""
    if not without_plumbing(drift):
        return ""
    clauses = [clause for kind in Kind for clause in _clauses(kind, [item for item in drift if item.kind is kind])]
    return f"since it was computed, {_listed(clauses)} changed"


def _config(record: Record, now: Record) -> Iterator[Drift]:
    if _is_ours(record) and now.config is not None:  # Marin writes configs in another form, and an adoption has none
        for field, before, after in differing_fields(record, now):
            yield Drift(kind=Kind.CONFIG, what=field, was=before, now=after)


def _code(record: Record, today: Record) -> Iterator[Drift]:
    was, now = record.source_digest, today.source_digest
    if not was or not now or was == now:
        return
    another = was.function != now.function
    if another:
        yield Drift(kind=Kind.FUNCTION, what=record.name or now.function, was=was.function, now=now.function)
    changed = _changed_modules(was.modules, now.modules)
    plumbing = [name for name in changed if is_plumbing(name)]
    for name in changed:
        before, after = was.modules.get(name), now.modules.get(name)
        # another function imports other modules: that is no further change
        if name not in plumbing and not (another and None in (before, after)):
            yield Drift(kind=Kind.SOURCE, what=name, was=before, now=after)
    if plumbing and not another:
        yield Drift(kind=Kind.PLUMBING, what=_named(plumbing), was=was.digest, now=now.digest)


def _changed_modules(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Modules whose code has changed, is new or is gone. A module that was only moved is left out."""
    gone, new = was.keys() - now.keys(), now.keys() - was.keys()
    moved = {was[name] for name in gone} & {now[name] for name in new}
    kept = {name for name in gone if was[name] not in moved} | {name for name in new if now[name] not in moved}
    return sorted(kept | {name for name in was.keys() & now.keys() if was[name] != now[name]})


def _inputs(record: Record, inputs: Mapping[str, str | None]) -> Iterator[Drift]:
    for name, was in (record.inputs or {}).items():
        now = inputs.get(name)
        if was is not None and now is not None and was != now:
            yield Drift(kind=Kind.INPUT, what=name, was=was, now=now)


def _environment(record: Record, now: Record) -> Iterator[Drift]:
    before, today = record.environment, now.environment
    both = {
        LOCK: (before.lock_digest, today.lock_digest),
        PYTHON: (_minor_version(before.python), _minor_version(today.python)),
    }
    for name, (was, is_now) in both.items():
        if was and is_now and was != is_now:
            yield Drift(kind=Kind.ENVIRONMENT, what=name, was=was, now=is_now)


def _minor_version(python: str | None) -> str:
    """ "3.11" of "3.11.9"."""
    return ".".join((python or "").split(".")[:2])


def _is_ours(record: Record) -> bool:
    return record.format_version is not None and record.config is not None


def _clauses(kind: Kind, drift: Sequence[Drift]) -> Iterator[str]:
    if kind in (Kind.CONFIG, Kind.FUNCTION):
        fields = [f"{item.what!r} ({_short(item.was)}, now {_short(item.now)})" for item in drift]
    else:
        fields = [repr(item.what) for item in drift if kind is not Kind.PLUMBING]
    if drift and kind is Kind.PLUMBING:
        yield "the plumbing"
    elif fields:
        more = [f"{len(fields) - MAX_NAMED} more"] if len(fields) > MAX_NAMED else []
        noun = _NOUNS[kind] + ("s" if len(fields) > 1 and kind in (Kind.CONFIG, Kind.INPUT) else "")
        yield f"{noun[0].lower()}{noun[1:]} {_listed(fields[:MAX_NAMED] + more)}"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _named(modules: Sequence[str]) -> str:
    more = [f"{len(modules) - MAX_NAMED} more"] if len(modules) > MAX_NAMED else []
    return _listed([*map(repr, modules[:MAX_NAMED]), *more])


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


LOCK, PYTHON = "uv.lock", "Python"
_ORDER = {kind: place for place, kind in enumerate(Kind)}
_NOUNS = {
    Kind.CONFIG: "The unversioned field",
    Kind.FUNCTION: "The function of",
    Kind.SOURCE: "The source of",
    Kind.INPUT: "The input",
    Kind.ENVIRONMENT: "The environment's",
    Kind.PLUMBING: "The plumbing",
}
