"""The drift of complete outputs: changes since they were computed that their versions do not cover.

Inputs that were computed again, unversioned fields, the code of the function, the environment; and outputs that were
computed again themselves, with another content. Nothing is computed again because of it: see
`docs/explanation/drift.md`.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from marin_assets.experiment_page.page_steps import PageStep
from marin_assets.stages.report.numbers import format_number
from marin_assets.stages.report.page_rows import finished_on
from marin_resources.drift.drift import Drift
from marin_resources.scrub.scrubber import Scrubber
from marin_resources.storage.output.state_summary import State
from marin_resources.types.record import Record

MOST = 100
"""Steps that are listed."""
MOST_SENTENCES = 10
"""Changes of a step."""


@dataclass(frozen=True, kw_only=True)
class Drifting:
    """A step with drift."""

    step: str
    sentences: tuple[str, ...]


def drift_of(steps: Sequence[PageStep], scrub: Scrubber) -> tuple[list[Drifting], int]:
    """The steps that have drift, and the number of those that are left out."""
    drifting = [step for step in steps if step.drift or step.past is not None]
    return [_drifting(step, scrub) for step in drifting[:MOST]], len(drifting) - len(drifting[:MOST])


def _drifting(step: PageStep, scrub: Scrubber) -> Drifting:
    sentences = [_recomputed(step.past, step.records[0])] if step.past is not None else []
    counted = Counter(_sentence(change, scrub) for changes in step.drift.values() for change in changes)
    complete = step.states.get(State.COMPLETE, 0)
    for sentence, count in counted.items():
        of = f" ({count:,} of {complete:,} partitions)" if step.is_partitioned else ""
        sentences.append(f"{sentence}{of}")
    more = len(sentences) - MOST_SENTENCES
    if more > 0:
        sentences = [*sentences[:MOST_SENTENCES], f"And {more} more changes."]
    return Drifting(step=step.name, sentences=tuple(map(scrub.text, sentences)))


def _sentence(change: Drift, scrub: Scrubber) -> str:
    """The sentence, its values scrubbed before long ones are cut."""
    name = change.what.rpartition(".")[2]
    was, now = (scrub.json({name: value})[scrub.text(name)] for value in (change.was, change.now))
    return dataclasses.replace(change, was=was, now=now).sentence()


def _recomputed(past: Record, now: Record) -> str:
    before, after = past.manifest, now.manifest
    sizes = ""
    if before.bytes is not None and after.bytes is not None:
        sizes = f", {format_number(before.bytes, 'bytes')} then and {format_number(after.bytes, 'bytes')} now"
    on = f" on {day}" if (day := finished_on(past)[:10]) else " earlier"
    return f"The output was computed{on} and again since, and its content differs{sizes}."
