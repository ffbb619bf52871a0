"""The scores of the checkpoints of trainings: of steps "checkpoint_evaluation/…" and "checkpoint_perplexity/…", which
have a partition for each export.

In:  the folders of their versions.   Out: for each training its checkpoints by step, with their scores, and those that
are not evaluated. Read: for each folder two listings, the record of the training, and those of the partitions: the
record of a complete one once in the life of the server, by the name of its marker.

Tokens are those of the sequences that the training has read from step 0 on, by the config in its record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from marin_assets.browse.errors import NotThereError
from marin_assets.browse.places import Place, Places
from marin_assets.browse.stored.leaderboard import EVALUATION, PERPLEXITY, Score, scores_in
from marin_assets.browse.stored.state import OutputState, read_each, state_at
from marin_assets.browse.stored.verdicts import today
from marin_assets.stages.train.exports import FOLDER as EXPORTS
from marin_assets.stages.train.exports import is_complete
from marin_assets.stages.train.specs.optimizer import LoopSpec, sequences_in
from marin_resources.storage.completion import partition_markers
from marin_resources.storage.files import folders_in
from marin_resources.storage.output.commit import recorded
from marin_resources.storage.paths import join
from marin_resources.types.output import Status
from marin_resources.types.partition_key import key_of
from marin_resources.types.versioned_json import ControlFileError

KINDS = {"checkpoint_evaluation": EVALUATION, "checkpoint_perplexity": PERPLEXITY}
"""First segments of the names of steps that evaluate checkpoints -> kind of their results."""
STEP = "step-"
NOT_EVALUATED = "not evaluated"
MOST_KEPT = 2_000

Scores = Mapping[str, Mapping[str, Score]]
"""Task -> its scores by metric."""


@dataclass(kw_only=True)
class Checkpoint:
    """An export of a training."""

    step: int
    tokens: int | None = None
    """None if the record of the training does not have them."""
    outputs: dict[str, str] = field(default_factory=dict)
    """Kind of evaluation -> text of the address of its output."""
    scores: dict[str, Mapping[str, Score]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    """Kind of evaluation -> its state in words, of those without a result."""


@dataclass(kw_only=True)
class Training:
    """The checkpoints of a training that are evaluated, or could be."""

    label: str
    text: str
    """Text of the address of its output; empty if it is not shown here."""
    kinds: dict[str, str] = field(default_factory=dict)
    """Kind of evaluation -> text of the folder of its version."""
    checkpoints: dict[int, Checkpoint] = field(default_factory=dict)

    @property
    def in_order(self) -> list[Checkpoint]:
        return [self.checkpoints[step] for step in sorted(self.checkpoints)]


def is_of_checkpoints(folder: Place) -> bool:
    """Whether a folder is that of a version of a step that evaluates checkpoints, by its path."""
    name, _, version = _below(folder).rpartition("-")
    kind, _, label = name.partition("/")
    return kind in KINDS and bool(label and version)


def evaluations_of_checkpoints(places: Places) -> list[tuple[str, int, int]]:
    """Text of the folder of each version below the prefixes, its complete partitions, and the time of the newest in
    seconds since 1970; the newest first."""
    newest: dict[str, tuple[int, int]] = {}
    for prefix in places.prefixes:
        for file in (file for kind in KINDS for file in partition_markers.list_files(prefix, kind)):
            folder = partition_markers.output_path_in(file).rpartition("/")[0]
            text = places.text_of(join(prefix, folder))
            if text is not None:
                count, time_s = newest.get(text, (0, 0))
                newest[text] = (count + 1, max(time_s, int(file.rpartition(".")[2])))
    return sorted(((text, *of) for text, of in newest.items()), key=lambda of: -of[2])


def read_trainings(places: Places, folders: Iterable[Place]) -> list[Training]:
    """Return the trainings whose checkpoints are evaluated in these folders. Raises NotThereError for another folder.

    An evaluation and a perplexity of one training are together; two evaluations of it are apart.
    """
    trainings: list[Training] = []
    for folder in folders:
        _add(trainings, places, folder)
    labels = [training.label for training in trainings]
    for training in trainings:
        if labels.count(training.label) > 1:
            versions = (text.rpartition("-")[2] for text in (training.text, *training.kinds.values()) if text)
            training.label = f"{training.label} ({', '.join(versions)})"
    return trainings


def _add(trainings: list[Training], places: Places, folder: Place) -> None:
    kind, _, label = _below(folder).rpartition("-")[0].partition("/")
    if not is_of_checkpoints(folder):
        raise NotThereError(
            f"{folder.text!r:.300} has no evaluations of checkpoints, expected a folder such as "
            "'checkpoint_evaluation/nano-1a2b3c'. Choose one at the page of checkpoints."
        )
    keys = {key: name for name in folders_in(folder.path) if (key := key_of(name)) and _step_in(key) is not None}
    if not keys:
        raise NotThereError(f"{folder.text!r:.300} has no evaluation of a checkpoint. Evaluate one.")
    markers = {
        partition_markers.output_path_in(file).rpartition("/")[2]: file
        for file in partition_markers.list_files(folder.prefix, _below(folder))
    }
    read = read_each(
        places,
        lambda name: _partition(join(folder.path, name), folder.prefix, KINDS[kind], markers.get(name, "")),
        list(keys.values()),
    )
    path = next((of.model_path for of in read if of.model_path), "")
    text = places.text_of(path.rpartition(f"/{EXPORTS}/")[0]) if f"/{EXPORTS}/" in path else None
    training = next(
        (of for of in trainings if (of.label, of.text) == (label, text or "") and kind not in of.kinds), None
    )
    if training is None:
        training = Training(label=label, text=text or "")
        trainings.append(training)
    training.kinds[kind] = folder.text
    for (key, segment), of in zip(keys.items(), read, strict=True):
        checkpoint = training.checkpoints.setdefault(int(key[len(STEP) :]), Checkpoint(step=int(key[len(STEP) :])))
        checkpoint.outputs[kind] = f"{folder.text.rstrip('/')}/{segment}"
        checkpoint.scores |= of.scores
        if not of.scores:
            checkpoint.states[kind] = of.state
    _add_exports(training, places)


def _below(folder: Place) -> str:
    """The path below the prefix."""
    return folder.text.removeprefix(f"{folder.prefix.rstrip('/')}/").rstrip("/")


def _step_in(key: str) -> int | None:
    digits = key.removeprefix(STEP)
    return (
        int(digits) if key.startswith(STEP) and digits.isascii() and digits.isdecimal() and len(digits) < 16 else None
    )


@dataclass(frozen=True, kw_only=True)
class _Partition:
    scores: Scores = field(default_factory=dict)
    model_path: str = ""
    state: str = NOT_EVALUATED


def _partition(path: str, prefix: str, kind: str, marker: str) -> _Partition:
    """The evaluation of one export; with a marker it is complete, and its record never changes."""
    if marker:
        try:
            return _kept_partition(path, prefix, kind, marker)
        except (ControlFileError, OSError):
            pass  # its state is a phrase of the page
    state = state_at(Place(path=path, text=path, prefix=prefix))
    if state is None:
        return _Partition()
    if state.damage or state.status is None:
        return _Partition(state="cannot be read")
    if not state.is_complete:
        return _Partition(state=state.status.value.lower())
    return _of_record(state, kind)


@lru_cache(MOST_KEPT)
def _kept_partition(path: str, prefix: str, kind: str, marker: str) -> _Partition:
    """`marker` is its key: a partition that is computed again has another one."""
    record = recorded(path, Status.SUCCESS)
    if record is None:
        raise FileNotFoundError(path)
    place = Place(path=path, text=path, prefix=prefix)
    return _of_record(OutputState(place=place, status=Status.SUCCESS, record=record), kind)


def _of_record(state: OutputState, kind: str) -> _Partition:
    config = state.record.config
    path = config.get("model_path") if isinstance(config, Mapping) else None
    return _Partition(
        scores=dict(scores_in(state.record.result, kind, "")),
        model_path=today(state, path) if isinstance(path, str) else "",
        state="without scores",
    )


def _add_exports(training: Training, places: Places) -> None:
    """Add the complete exports that are not evaluated, and the tokens of all."""
    if not training.text:
        return
    place = places.resolve(training.text)
    exports = join(place.path, EXPORTS)
    steps = {step: name for name in folders_in(exports) if (step := _step_in(name)) is not None}
    unknown = [step for step in steps if step not in training.checkpoints]
    complete = read_each(places, lambda step: is_complete(join(exports, steps[step])), unknown)
    for step, is_there in zip(unknown, complete, strict=True):
        if is_there:
            training.checkpoints[step] = Checkpoint(step=step)
    state = state_at(place)
    config = state.record.config if state is not None else None
    for checkpoint in training.checkpoints.values():
        checkpoint.tokens = tokens_after(config, checkpoint.step)


def tokens_after(config: Any, step: int) -> int | None:
    """The tokens of the sequences that a training with this config reads up to a step, which counts from 0, and with
    it. None if the config does not have their length."""
    if not isinstance(config, Mapping):
        return None
    loop = _part(config, "loop")
    length = loop.get("train_seq_len") or _part(config, "model").get("max_seq_len")
    size, schedule = config.get("train_batch_size"), loop.get("batch_schedule")
    try:
        stages = LoopSpec(batch_schedule=tuple((int(start), int(of)) for start, of in schedule)) if schedule else None
    except (TypeError, ValueError):
        return None
    if not (isinstance(length, int) and isinstance(size, int) and length > 0 and size > 0):
        return None
    return sequences_in(size, stages, 0, step + 1) * length


def _part(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = config.get(name)
    return value if isinstance(value, Mapping) else {}
