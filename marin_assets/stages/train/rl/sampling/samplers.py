"""The samplers of a training: in its own process, in others on this machine, or on hosts of the cluster.

The training begins the units of a step, and later waits for them. Which process samples a unit changes nothing in it.
One that is lost, with its host or alone, is replaced, and its unit is sampled again, while the training continues.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from marin_assets.stages.train.errors import TrainError
from marin_assets.stages.train.rl.config import TrainRlConfig
from marin_assets.stages.train.rl.plan import Unit
from marin_assets.stages.train.rl.rollout import Rollout
from marin_assets.stages.train.rl.sampling.sampler import (
    Sampler,
    open_sampler,
    open_sampler_here,
    open_sampler_on_host,
    read_unit,
)
from marin_assets.stages.train.rl.weights.publication import Publication, opened_publication
from marin_resources.ray_tpu.shards.connection import connect
from marin_resources.ray_tpu.shards.job_allocation import current_allocation
from marin_resources.ray_tpu.shards.replicas import ReplicaError, Replicas
from marin_resources.ray_tpu.worker.object_process import (
    CallError,
    LostProcessError,
    ObjectProcess,
    ObjectProcesses,
)
from marin_resources.wire.config_json import encode

LOOPBACK = "127.0.0.1"

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

    weights: Publication
    """The weights with which they sample."""

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
    are_elsewhere = config.samplers > 0 and current_allocation() is not None  # the step is a job on a cluster
    host = connect().util.get_node_ip_address() if are_elsewhere else LOOPBACK
    with opened_publication(config, host) as weights:
        if config.samplers == 0:
            with open_sampler_here(config) as sampler:
                yield _Here(weights, sampler)
            return
        processes = _on_cluster(config) if are_elsewhere else _on_this_machine(config)
        with processes, ThreadPoolExecutor(config.samplers, "sampler") as threads:
            apart = _Apart(config, weights, processes, threads)
            try:
                yield apart
            finally:
                apart.close()
                threads.shutdown(wait=False, cancel_futures=True)
                processes.__exit__(None, None, None)  # a call under way ends with its process


def _on_cluster(config: TrainRlConfig) -> Replicas:
    """Processes that take one call at a time, each with resources of its own."""
    return Replicas(
        open_sampler_on_host,
        (json.dumps(encode(config)),),
        count=config.samplers,
        resources=config.sampler_resources,
        calls_at_once=1,
        uses_allocation=False,  # the training computes while they do
    )


def _on_this_machine(config: TrainRlConfig) -> ObjectProcesses:
    arguments = (json.dumps(encode(config)),)
    return ObjectProcesses(
        lambda: ObjectProcess(open_sampler, arguments, on_line=lambda line: log.info("sampler: %s", line)),
        config.samplers,
    )


class _Here:
    """The training's process, which samples when it is waited for."""

    def __init__(self, weights: Publication, sampler: Sampler) -> None:
        self.weights, self._sampler = weights, sampler
        self._waiting: dict[int, Sequence[Unit]] = {}

    def begin(self, units: Sequence[Unit]) -> None:
        self._waiting[units[0].step] = units

    def finish(self, step: int) -> Work:
        calls = [_call_of(unit, self.weights) for unit in self._waiting.pop(step)]
        return _sum([_noted(self._sampler.sample(*call), self.weights) for call in calls])

    def keep_sampling(self, source: UnitSource) -> None:
        raise TrainError("The process of the training samples one step after the other. Set samplers to 1 or more.")

    def busy_seconds(self) -> float | None:
        return None


class _Apart:
    """Processes, to each of which a thread gives the next unit."""

    def __init__(
        self, config: TrainRlConfig, weights: Publication, processes: Any, threads: ThreadPoolExecutor
    ) -> None:
        self._config, self.weights, self._processes, self._threads = config, weights, processes, threads
        self._waiting: dict[int, list[Future[dict[str, float]]]] = {}
        self._source: UnitSource | None = None
        self._busy_s = 0.0

    def begin(self, units: Sequence[Unit]) -> None:
        calls = [_call_of(unit, self.weights) for unit in units]
        self._waiting[units[0].step] = [self._threads.submit(self._sample, *call) for call in calls]

    def finish(self, step: int) -> Work:
        return _sum([_noted(sampled.result(), self.weights) for sampled in self._waiting.pop(step)])

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
                work = _sum([_noted(self._sample(*_call_of(unit, self.weights)), self.weights)])
                source.end_unit(unit, read_unit(self._config.output_path, unit), work)
        except Exception as error:  # the training has it
            source.fail(error)

    def _sample(self, *call: str) -> dict[str, float]:
        try:
            answer: dict[str, float] = self._processes.call("sample", *call)
        except (CallError, LostProcessError, ReplicaError) as error:
            raise TrainError(f"A unit could not be sampled: {error}") from error
        self._busy_s += answer["seconds"]
        return answer


def _call_of(unit: Unit, weights: Publication) -> tuple[str, str]:
    """The arguments of `Sampler.sample`."""
    return json.dumps(encode(unit)), json.dumps(encode(weights.source(unit.weights_step)))


def _noted(answer: dict[str, float], weights: Publication) -> dict[str, float]:
    weights.fetched(answer["fetch_s"], int(answer["fetched_bytes"]))
    return answer


def _sum(work: Sequence[dict[str, float]]) -> Work:
    return Work(seconds=sum(unit["seconds"] for unit in work), tokens=int(sum(unit["tokens"] for unit in work)))
