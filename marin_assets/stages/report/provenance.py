"""The provenance of outputs, without persons and machines: function, commit, Python, lock. As rows of a table.

Steps with the same provenance are one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from marin_resources.types.record import Record

DIGITS = 12
MOST = 200
"""Rows of the table."""
MOST_COMMITS = 3


@dataclass(frozen=True, kw_only=True)
class Origin:
    """One provenance, and the steps that have it."""

    function: str
    commit: str
    """The first digits; "" if it is not recorded."""
    link: str
    """The commit's page on the web; "" without one that can be published."""
    dirty: bool
    python: str
    lock: str
    steps: tuple[str, ...]


def provenance_of(
    records: Iterable[tuple[str, Record]], link_to: Callable[[str, str], str] = lambda function, commit: ""
) -> list[Origin]:
    """The rows for records with the names of their steps, in this order. Outputs of one step may have several.

    `link_to`: the page of a commit of the repository that holds a function; "" without one.
    """
    grouped: dict[tuple[Any, ...], dict[str, None]] = {}
    for name, record in records:
        key = (str(record.fn_name or ""), *_commit(record), *_environment(record))
        grouped.setdefault(key, {})[name] = None
    return [
        Origin(
            function=function,
            commit=commit[:DIGITS],
            link=link_to(function, commit) if commit else "",
            dirty=dirty,
            python=python,
            lock=lock[:DIGITS],
            steps=tuple(names),
        )
        for (function, commit, dirty, python, lock), names in list(grouped.items())[:MOST]
    ]


def commits_of(records: Iterable[Record], recorded: str) -> str:
    """A phrase about the commits: "commit 1a2b3c4d5e6f, with changes"; "" if none is recorded."""
    commits = {pair: None for record in records if (pair := _commit(record))[0]}
    if not commits:
        return f"commit {recorded[:DIGITS]}" if recorded else ""
    phrases = [f"{commit[:DIGITS]}{', with changes' if dirty else ''}" for commit, dirty in commits]
    more = f" and {len(phrases) - MOST_COMMITS} more" if len(phrases) > MOST_COMMITS else ""
    return f"commit{'s' * (len(phrases) > 1)} {'; '.join(phrases[:MOST_COMMITS])}{more}"


def _commit(record: Record) -> tuple[str, bool]:
    git = record.git if isinstance(record.git, Mapping) else {}
    return str(git.get("commit") or record.to_dict().get("git_commit") or ""), bool(git.get("dirty"))


def _environment(record: Record) -> tuple[str, str]:
    return record.environment.python or "", record.environment.lock_digest or ""
