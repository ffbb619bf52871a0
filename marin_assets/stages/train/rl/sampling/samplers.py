"""The samplers of a training: in its own process, in others on this machine, or on hosts of the cluster.

The training begins the units of a step, and later waits for them. Which process samples a unit changes nothing in it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.plan import Unit
from marin_assets.stages.train.rl.rollout import Rollout
from marin_assets.stages.train.rl.sampling.sampler import Sampler, open_sampler, open_sampler_here, read_unit
from marin_resources.ray_tpu.shards.job_allocation import current_allocation
from marin_resources.ray_tpu.shards.replicas import Replicas
from marin_resources.ray_tpu.worker.object_process import CallError, ObjectProcess, ObjectProcesses
from marin_resources.wire.config_json import encode

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Work:
    """Measure of the sampling of a step."""

    seconds: float
    """Sum over its units."""
    tokens: int
    """Drawn."""

    def __add__(self, other: Work) -> Work:
        return Work(seconds=self.seconds + other.seconds, tokens=self.tokens + other.tokens)


class UnitSource(Protocol):
    """Gives samplers their units."""

    def next_unit(self) -> Unit | None:
        """Wait for the next unit, and return it; None if no more come."""

    def end_unit(self, unit: Unit, rollouts: Sequence[Rollout], work: Work) -> None: ...

    def fail(self, error: BaseException) -> None: ...

    def close(self) -> None:
        """Give no more units."""


class Samplers(Protocol):
    """Places in which units are sampled."""

    def begin(self, units: Sequence[Unit]) -> None:
        """Have the units of a step sampled, when a sampler is free."""

    def finish(self, step: int) -> Work:
        """Wait until the units of a step are written. Raises TrainError."""

    def keep_sampling(self, source: UnitSource) -> None:
        """Have each sampler sample units of a source until it has no more."""

    def busy_seconds(self) -> float | None:
        """Seconds that all samplers have worked so far; None if they are the training's own process."""


@contextmanager
def opened_samplers(config: TrainRlConfig) -> Iterator[Samplers]:
    """The samplers of a training, for the block."""
    if config.samplers == 0:
        with open_sampler_here(config) as sampler:
            yield _Here(sampler)
        return
    with _processes(config) as processes, ThreadPoolExecutor(config.samplers, "sampler") as threads:
        apart = _Apart(config, processes, threads)
        try:
            yield apart
        finally:
            apart.close()
            threads.shutdown(wait=False, cancel_futures=True)
            processes.__exit__(None, None, None)  # a call under way ends with its process


def _processes(config: TrainRlConfig) -> Any:
    """The processes, all of which take one call at a time."""
    arguments = (json.dumps(encode(config)),)
    allocation = current_allocation()
    if allocation is not None and not allocation.lent_while_waiting:  # the step is a job on a cluster
        return Replicas(
            open_sampler, arguments, count=config.samplers, resources=config.sampler_resources, calls_at_once=1
        )
    return ObjectProcesses(
        lambda: ObjectProcess(open_sampler, arguments, on_line=lambda line: log.info("sampler: %s", line)),
        config.samplers,
    )


class _Here:
    """The training's process, which samples when it is waited for."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler, self._waiting = sampler, dict[int, Sequence[Unit]]()

    def begin(self, units: Sequence[Unit]) -> None:
        self._waiting[units[0].step] = units

    def finish(self, step: int) -> Work:
        return _sum([self._sampler.sample(_as_json(unit)) for unit in self._waiting.pop(step)])

    def keep_sampling(self, source: UnitSource) -> None:
        raise TrainError("The process of the training samples one step after the other. Set samplers to 1 or more.")

    def busy_seconds(self) -> float | None:
        return None


class _Apart:
    """Processes, to each of which a thread gives the next unit."""

    def __init__(self, config: TrainRlConfig, processes: Any, threads: ThreadPoolExecutor) -> None:
        self._config, self._processes, self._threads = config, processes, threads
        self._waiting: dict[int, list[Future[dict[str, float]]]] = {}
        self._source: UnitSource | None = None
        self._busy_s = 0.0

    def begin(self, units: Sequence[Unit]) -> None:
        self._waiting[units[0].step] = [self._threads.submit(self._sample, _as_json(unit)) for unit in units]

    def finish(self, step: int) -> Work:
        return _sum([sampled.result() for sampled in self._waiting.pop(step)])

    def keep_sampling(self, source: UnitSource) -> None:
        self._source = source
        for _ in range(self._config.samplers):
            self._threads.submit(self._sample_from, source)

    def busy_seconds(self) -> float | None:
        return self._busy_s

    def close(self) -> None:
        if self._source is not None:
            self._source.close()

    def _sample_from(self, source: UnitSource) -> None:
        try:
            while (unit := source.next_unit()) is not None:
                work = _sum([self._sample(_as_json(unit))])
                source.end_unit(unit, read_unit(self._config.output_path, unit), work)
        except Exception as error:  # the training has it
            source.fail(error)

    def _sample(self, unit: str) -> dict[str, float]:
        began = time.monotonic()
        try:
            answer: dict[str, float] = self._processes.call("sample", unit)
        except CallError as error:
            raise TrainError(f"A unit could not be sampled: {error}") from error
        self._busy_s += time.monotonic() - began
        return answer


def _as_json(unit: Unit) -> str:
    return json.dumps(encode(unit))


def _sum(work: Sequence[dict[str, float]]) -> Work:
    return Work(seconds=sum(unit["seconds"] for unit in work), tokens=int(sum(unit["tokens"] for unit in work)))
