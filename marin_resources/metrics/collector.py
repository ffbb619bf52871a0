"""All metrics at one scrape. What cannot be read is a metric too, and the others are still given."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

import dagster as dg
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from marin_resources.metrics.steps import Steps
from marin_resources.storage.control import control
from marin_resources.storage.paths import join

NOTE = ".marin/metrics"
"""A file of the prefix that is looked for. It need not exist."""

READ_LIMIT_S = 5.0
"""A scrape does not wait longer for the store, whose client tries again for a minute: Prometheus waits 10 s."""

log = logging.getLogger(__name__)


NOT_ENDED = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)
ENDED = (dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED)
RUNNING = ("RUNNING", "DECLARED_IN_CODE", "AUTOMATICALLY_RUNNING")


class MarinCollector(Collector):
    """The metrics of one instance of Dagster and one prefix."""

    def __init__(self, instance: dg.DagsterInstance, prefix: str) -> None:
        self._instance, self._prefix = instance, prefix
        self._steps = Steps(instance=instance)
        self._steps.read()
        self._store_errors = 0
        self._reader = ThreadPoolExecutor(1, "store")
        self._reading: Future[float] | None = None
        self._one_at_a_time = threading.Lock()

    def collect(self) -> Iterable[Metric]:
        with self._one_at_a_time:
            return [*self._sources()]

    def _sources(self) -> Iterator[Metric]:
        sources: dict[str, Callable[[], Iterable[Metric]]] = {
            "steps": self._metrics_of_steps,
            "runs": lambda: metrics_of_runs(self._instance),
            "daemons": lambda: metrics_of_daemons(self._instance),
            "sensors": lambda: metrics_of_sensors(self._instance),
            "store": self._metrics_of_store,
        }
        up = GaugeMetricFamily("marin_source_up", "1 if this part of the metrics could be read.", labels=["source"])
        for name, read in sources.items():
            try:
                metrics = [*read()]
            except Exception:  # a database that is away has an error of its own kind
                log.exception("the metrics of %s cannot be read", name)
                up.add_metric([name], 0)
            else:
                up.add_metric([name], 1)
                yield from metrics
        yield up

    def _metrics_of_steps(self) -> Iterator[Metric]:
        steps = self._steps
        steps.read()
        yield _counter("marin_steps", "Outputs that runs came to, by outcome.", "outcome", steps.outcomes, OUTCOMES)
        yield _counter("marin_step_seconds", "Of computed outputs, by phase.", "phase", steps.seconds, STEP_PHASES)
        yield _counter(
            "marin_slice_seconds", "Of tries on slices; goodput is kept over all.", "phase", steps.slice_seconds, KEPT
        )
        yield _counter("marin_tries", "Tries on slices, by their end.", "end", steps.tries, ENDS)
        yield CounterMetricFamily(
            "marin_mirrored_bytes", "Bytes that steps have copied from other regions.", value=steps.mirrored_bytes
        )

    def _metrics_of_store(self) -> Iterator[Metric]:
        if self._reading is None:
            self._reading = self._reader.submit(self._read_store)
        try:
            took_s = self._reading.result(READ_LIMIT_S)
        except (OSError, TimeoutError) as error:
            self._store_errors += 1
            why = str(error) or f"no answer within {READ_LIMIT_S:g} s"
            log.warning("the prefix %s cannot be read: %s", self._prefix, why)
        else:
            latency = "How long one small read of the prefix took."
            yield GaugeMetricFamily("marin_store_read_seconds", latency, value=took_s)
        if self._reading.done():
            self._reading = None
        yield CounterMetricFamily("marin_store_errors", "Reads of the prefix that failed.", value=self._store_errors)

    def _read_store(self) -> float:
        """Read a file of the prefix; return the seconds that it took."""
        began_s = time.monotonic()
        control.require_reachable(self._prefix)
        control.read(join(self._prefix, NOTE))
        return time.monotonic() - began_s


OUTCOMES = ("computed", "attached", "reused", "failed")
STEP_PHASES = ("queue", "setup", "compute")
KEPT = ("waited", "startup", "kept", "lost")
ENDS = ("returned", "preempted")
"""Label values that are given from the beginning, as zero: a rate needs a first value."""


def _counter(name: str, help: str, label: str, counts: Mapping[str, float], always: Iterable[str]) -> Metric:
    metric = CounterMetricFamily(name, help, labels=[label])
    for value in sorted({*always, *counts}):
        metric.add_metric([value], counts.get(value, 0))
    return metric


def metrics_of_runs(instance: dg.DagsterInstance) -> Iterator[Metric]:
    now = GaugeMetricFamily("marin_runs", "Runs that have not ended, by Dagster's status.", labels=["status"])
    for status in NOT_ENDED:
        now.add_metric([status.value.lower()], instance.get_runs_count(dg.RunsFilter(statuses=[status])))
    yield now
    ended = CounterMetricFamily("marin_runs_ended", "Runs that have ended, and are not deleted.", labels=["status"])
    for status in ENDED:
        ended.add_metric([status.value.lower()], instance.get_runs_count(dg.RunsFilter(statuses=[status])))
    yield ended
    queued = dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED])
    oldest = instance.get_run_records(queued, limit=1, ascending=True)
    waits_s = time.time() - oldest[0].create_timestamp.timestamp() if oldest else 0.0
    yield GaugeMetricFamily("marin_oldest_queued_run_seconds", "How long the first of the queue waits.", value=waits_s)


def metrics_of_daemons(instance: dg.DagsterInstance) -> Iterator[Metric]:
    beats = GaugeMetricFamily("marin_daemon_heartbeat_age_seconds", "Since its last heartbeat.", labels=["daemon"])
    for name, beat in sorted(instance.get_daemon_heartbeats().items()):
        beats.add_metric([name], max(0.0, time.time() - beat.timestamp))
    yield beats


def metrics_of_sensors(instance: dg.DagsterInstance) -> Iterator[Metric]:
    """The running sensors and schedules: seconds since the last tick, and whether that failed."""
    ages = GaugeMetricFamily("marin_sensor_tick_age_seconds", "Since its last tick.", labels=["kind", "name"])
    failing = GaugeMetricFamily("marin_sensor_failing", "1 if its last tick failed.", labels=["kind", "name"])
    for state in instance.all_instigator_state():
        if state.status not in RUNNING:
            continue
        ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1)
        if ticks:
            names = [state.instigator_type.value.lower(), state.instigator_name]
            ages.add_metric(names, max(0.0, time.time() - ticks[0].timestamp))
            failing.add_metric(names, float(ticks[0].is_failure))
    yield from (ages, failing)
