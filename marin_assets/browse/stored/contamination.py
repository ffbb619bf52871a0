"""The questions of evaluations that are in the training data: by the outputs "contamination/…" that read an evaluation.

In:  evaluations.   Out: for each the counts by task of the newest such output, or why it has none.
Read: the markers of "contamination/…" by one listing, the record of each once in the life of the server; then the
records of the outputs that are shown, and of the models without one.

An output counts for the evaluation whose path its record names: that of another version of the evaluation does not. A
record is kept by the name of its marker, which two attempts never share. An output that was removed counts no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from marin_assets.browse.places import Place, Places
from marin_assets.browse.stored.state import OutputState, inputs_of, owner_of, read_each
from marin_assets.browse.stored.verdicts import today
from marin_assets.stages.report.models_by_tasks.contamination import (
    NOBODY_LOOKED,
    NOT_ON_RECORD,
    TaskContamination,
    contamination_by_task,
    not_searched_in,
)
from marin_resources.storage.completion.markers import list_marks
from marin_resources.storage.output.commit import recorded
from marin_resources.storage.paths import join
from marin_resources.types.output import Status
from marin_resources.types.versioned_json import ControlFileError

STEPS = "contamination"
"""First segment of the names of the steps that look for the questions of an evaluation."""
TRAININGS = ("marin_assets.stages.train.train_lm:train_lm", "marin_assets.stages.train.train_dpo:train_dpo")
OF_CHECKPOINTS = f"{NOBODY_LOOKED}: the evaluations of checkpoints are not searched"
MOST_OUTPUTS, MOST_KEPT = 5_000, 20_000
"""Outputs whose records are read, the newest; and records that are kept."""


@dataclass(frozen=True, kw_only=True)
class Contamination:
    """The contamination of one evaluation."""

    missing: str = NOBODY_LOOKED
    """Why a task has no counts."""
    tasks: Mapping[str, TaskContamination] = field(default_factory=dict)
    output: str = ""
    """Text of the address of the output with the counts; empty without one."""
    page: str = ""
    """Text of the address of its page; empty without one."""
    not_searched: Sequence[str] = ()
    """Training data that were not searched."""


def contamination_of(places: Places, evaluations: Iterable[OutputState]) -> dict[str, Contamination]:
    """Return the contamination of each evaluation, by the text of its address. Raises UnavailableError."""
    states = {state.place.text: state for state in evaluations}
    searched = _searched(places, states) if states else {}
    return {**_unsearched(places, [state for text, state in states.items() if text not in searched]), **searched}


def _searched(places: Places, states: Mapping[str, OutputState]) -> dict[str, Contamination]:
    """The counts of the evaluations that have some."""
    marks = [(prefix, mark) for prefix in places.prefixes for mark in list_marks(prefix, STEPS)]
    marks = sorted(marks, key=lambda of: -of[1].finished_s)[:MOST_OUTPUTS]
    inputs = read_each(places, lambda of: _inputs(of[0], f"{of[1].name}-{of[1].version}", of[1].file), marks)
    names = {text.rpartition("/")[2] for text in states}
    contamination: dict[str, Contamination] = {}
    for (prefix, mark), paths in zip(marks, inputs, strict=True):
        texts = {places.text_of(path) for path in paths if path.rpartition("/")[2] in names}
        unknown = [text for text in states if text in texts and text not in contamination]
        if unknown and (counts := _counts(places, join(prefix, f"{mark.name}-{mark.version}"))) is not None:
            contamination |= dict.fromkeys(unknown, counts)
    return contamination


def _inputs(prefix: str, name: str, marker: str) -> tuple[str, ...]:
    """The paths of the inputs of an output; none if its record cannot be read."""
    try:
        return _kept_inputs(prefix, name, marker)
    except (ControlFileError, OSError):  # not kept: it is read again for the next page
        return ()


@lru_cache(MOST_KEPT)
def _kept_inputs(prefix: str, name: str, marker: str) -> tuple[str, ...]:
    """`marker` is its key: an output that is computed again has another one."""
    path = join(prefix, name)
    record = recorded(path, Status.SUCCESS)
    if record is None:
        raise FileNotFoundError(path)
    place = Place(path=path, text=name, prefix=prefix)
    return tuple(inputs_of(OutputState(place=place, status=Status.SUCCESS, record=record)))


def _counts(places: Places, path: str) -> Contamination | None:
    """The counts of an output "contamination/…"; None if it was removed, or has none."""
    text = places.text_of(path)
    try:
        record = recorded(path, Status.SUCCESS)
    except (ControlFileError, OSError):  # the page of the output has the reason
        return None
    tasks = contamination_by_task(record.result) if record is not None else {}
    if record is None or not tasks or text is None:
        return None
    page = record.result.get("page")
    return Contamination(
        tasks=tasks,
        output=text,
        page=f"{text}/{page}" if isinstance(page, str) and "/" not in page else "",
        not_searched=not_searched_in(record.result),
    )


def _unsearched(places: Places, states: Sequence[OutputState]) -> dict[str, Contamination]:
    """Why the evaluations have no counts."""
    models = {state.place.text: _model_path(state) for state in states}
    paths = [path for path in dict.fromkeys(models.values()) if path]
    trained = dict(zip(paths, read_each(places, lambda path: _is_trained_here(places, path), paths), strict=True))
    return {
        state.place.text: Contamination(missing=_reason(state, trained.get(models[state.place.text], False)))
        for state in states
    }


def _model_path(state: OutputState) -> str:
    """The path today of the model that was evaluated; empty for one behind an endpoint."""
    config = state.record.config
    path = config.get("model_path") if isinstance(config, Mapping) else None
    return today(state, path) if isinstance(path, str) else ""


def _is_trained_here(places: Places, path: str) -> bool:
    """Whether a model is of a training whose data are on record. One outside of what is shown may be."""
    text = places.text_of(path)
    model = None if text is None else owner_of(places, places.resolve(text))
    return text is None or (model is not None and model.record.fn_name in TRAININGS)


def _reason(state: OutputState, is_trained_here: bool) -> str:
    if not is_trained_here:
        return NOT_ON_RECORD
    return NOBODY_LOOKED if state.record.partition is None else OF_CHECKPOINTS
