"""`.marin/attempts/<n>.json` and `<n>.log`: each attempt at an output, its process, its end, and its log.

The number is the attempt's fence: it only grows, and exactly one writer has it. The mark (the JSON file) also shows
that the files beside it are ours.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from marin_resources.storage.control import control
from marin_resources.storage.control.protocol import UnavailableError
from marin_resources.storage.files import names_in, remove
from marin_resources.storage.output.commit import read_commit
from marin_resources.storage.paths import join
from marin_resources.types.versioned_json import ControlFileError, VersionedJson

FOLDER = ".marin/attempts"
FORMAT_VERSION = 1

log = logging.getLogger(__name__)


class AttemptError(ControlFileError):
    """A mark that cannot be read: one sentence with its path."""


FORMAT = VersionedJson(
    kind="mark of an attempt",
    newest=FORMAT_VERSION,
    error=AttemptError,
    shape={
        "identity": str,
        "data_path": str,
        "outcome": str,
        "error": str,
        "traceback": str,
        "tries": [dict],
        "ledger": dict,
        "spent": dict,
        "complete_before_s": int,
    },
)


def latest_attempt(output_path: str) -> int:
    """The number of the latest attempt; 0 if none has begun."""
    commit = read_commit(output_path)
    return commit.fence if commit is not None and commit.fence else latest_mark(output_path)


def has_begun(path: str, attempt: int) -> bool:
    """Whether this attempt or a later one has claimed the output."""
    return latest_attempt(path) >= attempt


def latest_mark(output_path: str) -> int:
    """The highest number of a mark: the latest attempt at an output without a commit object, as in earlier formats."""
    numbers = (name.removesuffix(".json") for name in names_in(join(output_path, FOLDER)))
    return max((int(number) for number in numbers if number.isascii() and number.isdecimal()), default=0)


def log_path(output_path: str, attempt: int) -> str:
    return join(output_path, FOLDER, f"{attempt}.log")


def read_attempt(output_path: str, attempt: int) -> dict[str, Any]:
    """The mark of an attempt. Raises FileNotFoundError, ControlFileError and UnavailableError."""
    path = _mark(output_path, attempt)
    snapshot = control.read(path)
    if snapshot is None:
        raise FileNotFoundError(f"No mark of an attempt exists at {path!r}.")
    return FORMAT.parse(snapshot.data, path)


def has_mark(output_path: str, attempt: int) -> bool:
    """Whether exactly this attempt has claimed the output, and its mark is still there. Raises UnavailableError."""
    return control.read(_mark(output_path, attempt)) is not None


def failures_in_a_row(output_path: str, most: int) -> int:
    """The number of the newest attempts that have failed, up to `most`. One that was stopped or lost is passed over.

    Raises ControlFileError and UnavailableError.
    """
    failures = 0
    for attempt in range(latest_attempt(output_path), 0, -1):
        try:
            outcome = read_attempt(output_path, attempt).get("outcome")
        except FileNotFoundError:
            continue  # the number of a job that never began
        if outcome == "success" or failures == most:
            break
        failures += outcome == "failed"
    return failures


def earlier_tries(output_path: str, attempt: int) -> list[dict[str, Any]]:
    """The tries on slices of the attempts before this one, as `ledger.facts_of` has put them into their marks; back to
    the last that succeeded, oldest first."""
    facts: list[dict[str, Any]] = []
    for number in range(attempt - 1, 0, -1):
        try:
            mark = read_attempt(output_path, number)
        except FileNotFoundError:
            continue  # the number of a job that never began
        except (ControlFileError, UnavailableError) as error:
            log.warning("the tries of attempt %d are not known: %s", number, error)
            continue
        if mark.get("outcome") == "success":
            break
        if "tries" in mark:
            facts.insert(0, {name: mark[name] for name in ("tries", "ledger") if name in mark})
    return facts


def latest_identity(output_path: str, latest: int) -> str | None:
    """The identity that the newest marked attempt computed. A mark is written when the folder is ready."""
    return _newest_mark(output_path, latest).get("identity")


def latest_data_path(output_path: str, latest: int) -> str | None:
    """The data path of the newest marked attempt; None if that is `output_path`, or no attempt is marked."""
    return _newest_mark(output_path, latest).get("data_path")


def _newest_mark(output_path: str, latest: int) -> dict[str, Any]:
    for attempt in range(latest, 0, -1):
        try:
            return read_attempt(output_path, attempt)
        except FileNotFoundError:
            continue  # the number of a job that never began
    return {}


def begin_attempt(output_path: str, attempt: int, facts: Mapping[str, Any]) -> None:
    """Write the mark of a new attempt. The commit object has given its number to this writer alone."""
    _write(output_path, attempt, {"format_version": FORMAT_VERSION, "attempt": attempt, **facts})


def add_facts(output_path: str, attempt: int, facts: Mapping[str, Any]) -> None:
    """Add facts to the mark of an attempt under way, from its own worker. A failure to do so is logged."""
    try:
        _write(output_path, attempt, {**read_attempt(output_path, attempt), **facts})
    except (ControlFileError, FileNotFoundError, UnavailableError) as error:
        log.warning("the mark of attempt %d cannot be brought up to date: %s", attempt, error)


def end_attempt(output_path: str, attempt: int, facts: Mapping[str, Any]) -> None:
    """Add the end of the attempt to its mark. The mark is history: if it is damaged or gone, the end is logged."""
    try:
        _write(output_path, attempt, {**read_attempt(output_path, attempt), **facts})
    except (ControlFileError, FileNotFoundError) as error:
        log.warning("the end of attempt %d (%s) cannot be recorded: %s", attempt, facts.get("outcome"), error)


def end_stopped(path: str, attempt: int, reason: str) -> None:
    """Mark an attempt as stopped, unless its worker has recorded its end itself."""
    try:
        marked = read_attempt(path, attempt)
    except FileNotFoundError:
        return  # it died before it wrote its mark, and has no history
    if "outcome" not in marked:
        ended = {"outcome": "stopped", "error": reason, "finished_at": datetime.now(UTC).isoformat()}
        end_attempt(path, attempt, ended)


def remove_mark(output_path: str, attempt: int) -> None:
    """Remove the mark of an attempt, with the lease of an output that is removed."""
    remove(_mark(output_path, attempt))


def _mark(output_path: str, attempt: int) -> str:
    return join(output_path, FOLDER, f"{attempt}.json")


def _write(output_path: str, attempt: int, facts: Mapping[str, Any]) -> None:
    control.put(_mark(output_path, attempt), json.dumps(facts, indent=2).encode())
