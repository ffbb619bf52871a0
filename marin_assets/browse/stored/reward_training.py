"""Trainings on rewards, as they are stored: finished ones, those under way, and those that were killed.

In:  the place of an output of `train_rl`.   Out: the rows of its metrics, its rollouts by their small columns.
Each part is read by itself: one that is damaged or missing leaves a sentence in its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marin_assets.browse.places import Places
from marin_assets.browse.stored.state import OutputState, state_at
from marin_assets.browse.stored.token_rows import tokenizer_at
from marin_assets.browse.stored.verdicts import today
from marin_assets.documents.caches.token_cache import CacheError
from marin_assets.documents.caches.tokens import FILE, TokenizerFileError
from marin_assets.documents.document import DocumentError
from marin_assets.documents.frames.pages import count_rows
from marin_assets.stages.train.exports import FOLDER as EXPORTS
from marin_assets.stages.train.rl.measures.selection import SmallRow, read_small, steps_to_read, tables_in
from marin_assets.stages.train.rl.rollout import FOLDER as ROLLOUTS
from marin_resources.storage.files import exists, folders_in, read_bytes, size_of
from marin_resources.storage.paths import join

FUNCTION = "marin_assets.stages.train.rl.train_rl:train_rl"
COMPARISON = "marin_assets.stages.report.compare_runs:compare_runs"
MOST_COMPARED = 8
METRICS, MEASURED = "metrics.jsonl", "rl/wait_share"
OF_A_RUN = (ROLLOUTS, "plans")
"""Folders by which a training without a record is recognized: it gets one when it ends."""
MOST_METRICS_BYTES = 64 * 1024**2
MOST_ROLLOUTS = 500_000
"""Rollouts that are counted: about four seconds."""

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of rollouts."""

    path: str
    text: str
    """The text of its address."""
    rows: Sequence[SmallRow]


@dataclass(kw_only=True)
class RewardTraining:
    """A training on rewards."""

    state: OutputState
    metrics: Sequence[Row] = ()
    """By step, finite numbers alone."""
    tables: Sequence[Table] = ()
    notes: list[str] = field(default_factory=list)
    """A sentence for each part that cannot be read."""
    is_whole: bool = True
    """Whether `tables` are all, so that they can be counted."""

    @property
    def config(self) -> Mapping[str, Any]:
        config = self.state.record.config
        return config if isinstance(config, Mapping) else {}

    @property
    def label(self) -> str:
        """The name in the legend of several: that of its step with the version."""
        return self.state.place.text

    @property
    def done(self) -> int:
        """Steps that are measured: the last row of a training under way may have begun only."""
        return sum(MEASURED in row for row in self.metrics)

    @property
    def steps(self) -> int | None:
        """Those that it shall have; None if its record does not have them."""
        steps = self.config.get("num_train_steps")
        return steps if isinstance(steps, int) and not isinstance(steps, bool) else None


def is_reward_training(state: OutputState) -> bool:
    """Whether the output is a training on rewards."""
    if state.record.fn_name:
        return state.record.fn_name == FUNCTION
    return not state.is_complete and bool(set(OF_A_RUN).intersection(folders_in(state.place.path)))


def compared_trainings(places: Places, state: OutputState) -> list[str]:
    """The texts of the trainings on rewards that an output of `compare_runs` compares, MOST_COMPARED at most; of such a
    training its own; else none."""
    if is_reward_training(state):
        return [state.place.text]
    config = state.record.config
    runs = config.get("runs") if state.record.fn_name == COMPARISON and isinstance(config, Mapping) else None
    paths = [path for path in runs.values() if isinstance(path, str)] if isinstance(runs, Mapping) else []
    texts = (places.text_of(today(state, path)) for path in paths[:MOST_COMPARED])
    shown = ((text, state_at(places.resolve(text))) for text in texts if text is not None)
    return [text for text, run in shown if run is not None and is_reward_training(run)]


def read_reward_training(places: Places, state: OutputState, *, with_rollouts: bool = True) -> RewardTraining:
    """The training at an output for which `is_reward_training` is true."""
    training = RewardTraining(state=state)
    if places.text_of(state.data_path) is None:
        training.notes.append(f"The data of this output are at {state.data_path!r:.300}, outside of what is shown.")
        training.is_whole = False
        return training
    try:
        training.metrics = _metrics(join(state.data_path, METRICS))
    except (ValueError, RecursionError) as error:
        training.notes.append(f"The metrics cannot be read ({error}). Compute the output again.")
    if with_rollouts:
        training.tables = _tables(places, training)
    return training


def tokenizer_of(places: Places, state: OutputState) -> tuple[Any, str]:
    """The tokenizer of a training; None with the reason."""
    config = state.record.config
    path = config.get("tokenizer_path") if isinstance(config, Mapping) else None
    folders = [today(state, path)] if isinstance(path, str) else []
    own = [join(state.data_path, EXPORTS, name) for name in sorted(folders_in(join(state.data_path, EXPORTS)))]
    folders += [join(state.data_path, "hf"), *own]
    shown = [places.resolve(text).path for folder in folders if (text := places.text_of(folder)) is not None]
    folder = next((folder for folder in shown if exists(join(folder, FILE))), "")
    if not folder:
        return None, "no tokenizer is shown here: a training under way has none before its first export"
    try:
        return tokenizer_at(folder), ""
    except (TokenizerFileError, CacheError, FileNotFoundError) as error:
        return None, str(error)


def _metrics(path: str) -> list[Row]:
    """Raises ValueError for a damaged file. A line that a kill has cut is left out, as a resumed training does."""
    if not exists(path):
        return []
    if (size := size_of(path)) > MOST_METRICS_BYTES:
        raise ValueError(f"they have {size:,} bytes, expected at most {MOST_METRICS_BYTES:,}")
    *lines, _cut = read_bytes(path).split(b"\n")
    rows = []
    for number, line in enumerate(lines, 1):
        row = json.loads(line)
        if not isinstance(row, dict) or not _is_step(row.get("step")):
            raise ValueError(f"line {number} has no step")
        rows.append({name: value for name, value in row.items() if _is_finite(value)})
    return [row for row in rows if row["step"] >= 0]


def _tables(places: Places, training: RewardTraining) -> list[Table]:
    tables, paths = [], tables_in(training.state.data_path)
    if sum(map(_rows_in, paths)) > MOST_ROLLOUTS:
        paths, training.is_whole = [paths[index] for index in steps_to_read(range(len(paths)))], False
        training.notes.append(
            f"There are more than {MOST_ROLLOUTS:,} rollouts, so they are not counted here: the result of a finished "
            "training has their numbers."
        )
    for path in paths:
        text = places.text_of(path)
        if text is None:
            training.notes.append(f"The table {path!r:.300} is a link that leads out of what is shown.")
            training.is_whole = False
            continue
        try:
            tables.append(Table(path=path, text=text, rows=read_small(path)))
        except DocumentError as error:
            training.notes.append(str(error))
            training.is_whole = False
        except FileNotFoundError:
            training.notes.append(f"The table {path!r:.300} was combined with others meanwhile. Load this again.")
            training.is_whole = False
    return tables


def _rows_in(path: str) -> int:
    try:
        return count_rows(path) or 0
    except (DocumentError, FileNotFoundError):  # it is named when it is read
        return 0


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
