"""Failures of steps as Dagster shows them: one sentence, with the traceback and the logs of failed attempts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import dagster as dg

from marin_resources.dagster_fixes.executor.partial_failure import partial_failure_metadata
from marin_resources.orchestrator.produce import FAILED_ATTEMPTS, ProduceError
from marin_resources.types.errors import MarinError

SHOWN_FAILURES = 5


def failure(sentence: str, traceback: str = "", logs: Sequence[str] = ()) -> dg.Failure:
    """A failure that Dagster shows as the sentence, with the function's traceback below it.

    `logs` are those of the attempts that failed.
    """
    metadata: dict[str, dg.MetadataValue] = {}
    if traceback:
        metadata["traceback"] = dg.MetadataValue.md(f"```\n{traceback}\n```")
    if logs:
        metadata[FAILED_ATTEMPTS] = dg.MetadataValue.json(list(logs))
    described = f"{sentence}\n\n{traceback}" if traceback else sentence
    return dg.Failure(described.strip(), metadata={"error": sentence, **metadata}, allow_retries=False)


def failure_from(label: str, error: MarinError) -> dg.Failure:
    """The failure of the output `label`, whose name the sentence has once."""
    if isinstance(error, ProduceError):
        return failure(str(error), error.traceback, [error.log] if error.log else [])
    return failure(str(error) if repr(label) in str(error) else f"Step {label!r}: {error}")


def failure_of_partitions(
    name: str, failures: Mapping[str | None, dg.Failure], count: int, complete: int
) -> dg.Failure:
    """One failure for all: the sentences of the first outputs that failed, and the first traceback. The steps below
    continue with the complete ones."""
    if count == 1:
        [only] = failures.values()
        return only
    sentence = f"{len(failures)} of {count} partitions of {name!r} failed. {shown_failures(failures)}"
    together = failure(sentence, logs=[log for error in failures.values() for log in _logs(error)])
    first = next((trace for error in failures.values() if (trace := error.metadata.get("traceback"))), None)
    rows = [{"partition": key, "error": _sentence(error)} for key, error in failures.items()]
    metadata = {**together.metadata, "failed": dg.MetadataValue.json(rows), **({"traceback": first} if first else {})}
    if complete:
        metadata |= partial_failure_metadata(complete)
    return dg.Failure(together.description, metadata=metadata, allow_retries=False)


def shown_failures(failures: Mapping[str | None, dg.Failure]) -> str:
    """The sentences of the first failures, and the number of the others."""
    shown = [_sentence(error) for error in list(failures.values())[:SHOWN_FAILURES]]
    if more := len(failures) - len(shown):
        shown.append(f"And {more} more partitions: see the metadata of this failure, or `marin partitions`.")
    return " ".join(shown)


def _logs(error: dg.Failure) -> list[str]:
    """The logs of the attempts that failed."""
    logs = error.metadata.get(FAILED_ATTEMPTS)
    return cast(list[str], logs.value) if logs is not None else []


def _sentence(error: dg.Failure) -> str:
    return str(error.metadata["error"].value)
