"""The batches of a finished training again, from its tables and its ledger. Nothing is sampled."""

from __future__ import annotations

from typing import Any

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.config import FREE, TrainRlConfig
from marin_assets.stages.train.rl.curriculum.progress import LessonProgress
from marin_assets.stages.train.rl.orders.free import groups_again
from marin_assets.stages.train.rl.orders.ledger import read_entries, write_entry
from marin_assets.stages.train.rl.rollout import Rollout, Tables, write_step
from marin_assets.stages.train.rl.sampling.samplers import Work


class ReplayedOrder:
    """An Order."""

    work: Work | None = None

    def __init__(self, config: TrainRlConfig, progress: LessonProgress) -> None:
        assert config.replay_of is not None
        self._config, self._source, self._progress = config, config.replay_of, progress
        self._tables = Tables(config.replay_of)
        self._entries = read_entries(config.replay_of)

    def begin(self, step: int, model: Any) -> None:
        self._progress.weights_for(step)
        self._progress.write()

    def rollouts(self, step: int) -> list[Rollout]:
        table, entry = self._tables.of_step(step), self._entries.get(step)
        if entry is None and self._config.order == FREE:
            raise TrainError(
                f"replay_of is {self._source!r}, whose ledger has no step {step}, and order is 'free'. Expected the "
                "output of a finished training in this order."
            )
        if not table and (entry is None or not entry.again):
            raise TrainError(
                f"replay_of is {self._source!r}, which has no rollouts of step {step}. Expected the output of a "
                f"finished training of {self._config.num_train_steps} steps."
            )
        write_step(self._config.output_path, step, table)
        if entry is None:
            return table
        write_entry(self._config.output_path, entry)
        return [*table, *groups_again(entry, self._tables.of_step)]

    def end(self, step: int) -> None: ...

    def close(self) -> None: ...
