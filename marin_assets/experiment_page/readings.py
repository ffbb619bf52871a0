"""The steps that a page shows in detail, with their whole records, and what their files hold: curves, scores, plots.

A record or a file that cannot be read is a sentence of the page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from marin_assets.experiment_page.page_steps import PageStep, everything
from marin_assets.stages.report.records import StepRecord
from marin_assets.stages.report.report import generated_texts, loss_charts, plots_of, score_charts
from marin_assets.stages.report.timeline import draw_tries
from marin_assets.stages.report.waterfall import waterfall_charts
from marin_resources.scrub.scrubber import Scrubber
from marin_resources.storage.output.record import read_record
from marin_resources.storage.output.state_summary import State
from marin_resources.types.errors import MarinError
from marin_resources.types.record import Record

MOST_STEPS = 40
"""Steps in detail."""
LEARNS = (".stages.train", ".stages.evaluate")
"""Parts of the references of functions whose results answer whether a model has learnt."""
MOST_CONFIG_CHARACTERS = 10_000
MOST_PLOT_BYTES = 3_000_000
"""Bytes of all plots of a page together."""
MOST_TEXT_CHARACTERS = 2_000
UNREADABLE = (
    *(MarinError, OSError, ValueError, TypeError, KeyError, AttributeError, IndexError, ArithmeticError),
    RecursionError,
)
"""Errors of files that are damaged, or of another shape than today's."""

Read = TypeVar("Read")


@dataclass(kw_only=True)
class Readings:
    """Records and contents of the steps in detail, by name of the step."""

    records: dict[str, StepRecord] = field(default_factory=dict)
    """The records of complete steps without partitions, inputs first."""
    losses: dict[str, str] = field(default_factory=dict)
    scores: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    generated: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    plots: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    timelines: dict[str, str] = field(default_factory=dict)
    configs: dict[str, str] = field(default_factory=dict)
    waterfalls: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Sentences."""


def steps_in_detail(steps: Sequence[PageStep]) -> list[PageStep]:
    """All steps of a small experiment; of a large one those that train or evaluate, those that no other step reads, and
    the last ones; inputs first."""
    if len(steps) <= MOST_STEPS:
        return list(steps)
    read = {parent for step in steps for parent in step.parents}

    def rank(numbered: tuple[int, PageStep]) -> tuple[bool, bool, int]:
        place, step = numbered
        return not any(part in step.function for part in LEARNS), step.name in read, -place

    return [step for _, step in sorted(sorted(enumerate(steps), key=rank)[:MOST_STEPS], key=lambda pair: pair[0])]


def read_steps(steps: Sequence[PageStep], scrub: Scrubber, shows: Callable[[str], bool] = everything) -> Readings:
    """Read the records and files of these steps. `shows`: whether a path may be read."""
    readings = Readings()

    def attempt(subject: str, read: Callable[[], Read], otherwise: Read) -> Read:
        try:
            return read()
        except UNREADABLE as error:
            readings.problems.append(scrub.text(f"{subject} cannot be shown: {type(error).__name__}: {error}"))
            return otherwise

    for step in steps:
        if step.whole is not None and step.state is State.COMPLETE:
            record = attempt(f"The record of {step.name!r}", partial(_record, step, shows), None)
            if record is not None:
                readings.records[step.name] = record
    for label, step_record in readings.records.items():
        about, own = f"of {label!r}", {label: step_record}
        no_losses: dict[str, str] = {}
        readings.losses |= attempt(f"The losses {about}", partial(loss_charts, own), no_losses)
        readings.scores[label] = attempt(f"The scores {about}", partial(score_charts, step_record, own), [])
        readings.generated[label] = attempt(f"The texts {about}", partial(_texts, step_record, scrub), [])
        readings.plots[label] = attempt(f"The plots {about}", partial(plots_of, step_record), [])
        tries = attempt(f"The tries {about}", partial(_tries, step_record), "")
        readings.timelines |= {label: tries} if tries else {}
        readings.configs[label] = _config(step_record.record, scrub)
    _keep_plots(readings)
    readings.waterfalls = attempt("The waterfall", lambda: waterfall_charts(readings.records), [])
    return readings


def _record(step: PageStep, shows: Callable[[str], bool]) -> StepRecord | None:
    observed = step.whole
    assert observed is not None
    record = (read_record(observed.path) if observed.listed else None) or observed.record
    data_path = observed.data_path if shows(observed.data_path) else observed.path
    return StepRecord(label=step.name, path=data_path, own_path=observed.path, record=record)


def _texts(record: StepRecord, scrub: Scrubber) -> list[dict[str, Any]]:
    rows = generated_texts(record)
    return [{name: scrub.text(str(row[name]))[:MOST_TEXT_CHARACTERS] for name in ("prompt", "text")} for row in rows]


def _keep_plots(readings: Readings) -> None:
    """Leave out plots beyond `MOST_PLOT_BYTES` of all steps, and state how many."""
    total = omitted = 0
    for label, plots in readings.plots.items():
        kept = []
        for name, source in plots:
            total += len(source)
            kept += [(name, source)] if total <= MOST_PLOT_BYTES else []
        omitted += len(plots) - len(kept)
        readings.plots[label] = kept
    if omitted:
        readings.problems.append(f"{omitted} plots are left out, as all are more than the page holds: see the outputs.")


def _tries(record: StepRecord) -> str:
    return draw_tries(record.tries) if record.tries else ""


def _config(record: Record, scrub: Scrubber) -> str:
    text = json.dumps(scrub.json(record.config), indent=2, ensure_ascii=False)
    more = len(text) - MOST_CONFIG_CHARACTERS
    return text if more <= 0 else f"{text[:MOST_CONFIG_CHARACTERS]}\n… and {more:,} more characters"
