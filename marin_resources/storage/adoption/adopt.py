"""Adopt data as the output of a step: an attempt that computes nothing, and publishes the manifest of the data.

Control files are written at the output's own path alone. Its record has `data_path`, where readers find the data, and
`adopted`: from where, why, by whom, when, and the output that the data were made as.
"""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from marin_resources.storage.adoption.errors import AdoptionError
from marin_resources.storage.adoption.lease_wait import acquire_or_refuse
from marin_resources.storage.adoption.source import Source
from marin_resources.storage.lease.protocol import LeaseLostError
from marin_resources.storage.output import attempts
from marin_resources.storage.output.leftovers import StoreError
from marin_resources.storage.output.notes.job_notes import first_free_attempt
from marin_resources.storage.output.store import AlreadyDoneError, Claim, Store, other_version_message
from marin_resources.types.output import Match, Output
from marin_resources.types.places import is_same


def is_adopted_from(path: str, store: Store, output: Output) -> bool:
    """Whether the output is adopted from there already: by an earlier try, which was killed. Raises AdoptionError if it
    cannot be adopted, as it is complete otherwise, or its own path is another version's."""
    seen = store.look([output])[output]
    if seen.damage:
        raise AdoptionError(seen.damage)
    if seen.match is Match.OTHER:
        raise AdoptionError(other_version_message(output, seen.path))
    if seen.adopted is not None and is_same(seen.adopted.path, path):
        return True
    if seen.adopted is not None:
        raise AdoptionError(
            f"{output.label!r} is adopted from {seen.adopted.path!r} already. Take that back first: the same "
            "command with --undo, and without --from and --why."
        )
    if seen.done:
        raise AdoptionError(
            f"{output.label!r} is complete at {seen.path!r} already, so nothing else can serve as it. If it is not to "
            "be used, remove it first."
        )
    return False


def adopt(
    store: Store,
    output: Output,
    source: Source,
    facts: Mapping[str, Any],
    *,
    why: str,
    by: str,
    report: Callable[[str], None] = lambda line: None,
) -> None:
    """Make the data of the source the output. `facts`: those of its step, for the record.

    Raises AdoptionError if another process computes the output, or has completed it; UnavailableError.
    """
    claim = acquire_or_refuse(lambda stale: _claim(store, output, source, stale), output.label, report)
    if claim is None:
        return
    at = datetime.now(UTC).isoformat()
    adopted = {"from": source.path, "why": why, "by": by, "at": at, "of": source.of}
    try:
        attempts.add_facts(claim.path, claim.attempt, {"adopted": adopted})
        elsewhere = dataclasses.replace(claim, data_path=source.path)
        store.publish_manifest(
            elsewhere, source.manifest, {**facts, **_ending(store, elsewhere, source), "adopted": adopted}
        )
    except LeaseLostError as error:
        claim.lease.release()
        raise AdoptionError(str(error)) from None
    except Exception as error:  # recorded, as of any attempt
        store.fail(claim, facts, f"{type(error).__name__}: {error}", traceback.format_exc())
        raise
    except BaseException:  # Ctrl-C
        claim.lease.release()
        raise


def _claim(store: Store, output: Output, source: Source, stale: str | None) -> Claim | None:
    """The claim; None if it is adopted already."""
    path = store.locate(output)
    while not is_adopted_from(source.path, store, output):
        try:
            return store.claim(
                output, attempt=first_free_attempt(path), resumable=False, run_id=None, stale_lease=stale
            )
        except AlreadyDoneError:  # it is complete by now, or its number is taken
            continue
        except StoreError as error:
            raise AdoptionError(str(error)) from None
    return None


def _ending(store: Store, claim: Claim, source: Source) -> dict[str, Any]:
    """The facts of the attempt for the record: without its duration, as the computation of the data took another time.
    Only a result that was recorded with the data is theirs."""
    ending = {name: value for name, value in store.ending(claim).items() if name != "duration_s"}
    return ending | ({"result": dict(source.record.result)} if source.record.has_result else {})
